package redistest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Keys returns all keys that match the pattern, sorted, on every master of a cluster.
func Keys(t testing.TB, rdb redis.UniversalClient, pattern string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var mu sync.Mutex
	var keys []string
	scan := func(ctx context.Context, node redis.Cmdable) error {
		for it := node.Scan(ctx, 0, pattern, 1000).Iterator(); ; {
			if !it.Next(ctx) {
				return it.Err()
			}
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
	}
	var err error
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
	} else {
		err = scan(ctx, rdb)
	}
	if err != nil {
		t.Fatalf("redistest: list the keys %s: %v", pattern, err)
	}
	slices.Sort(keys)
	return slices.Compact(keys) // SCAN may return a key twice
}

// RequireNoKeys fails the test where a key matches the pattern.
func RequireNoKeys(t testing.TB, rdb redis.UniversalClient, pattern string) {
	t.Helper()
	if keys := Keys(t, rdb, pattern); len(keys) > 0 {
		t.Fatalf("%d keys match %s and none should: %s", len(keys), pattern, some(keys))
	}
}

// RequireAllKeysHaveTTL fails the test where a key that matches the pattern would stay for ever.
func RequireAllKeysHaveTTL(t testing.TB, rdb redis.UniversalClient, pattern string) {
	t.Helper()
	var forever []string
	for _, key := range Keys(t, rdb, pattern) {
		ttl, err := rdb.PTTL(context.Background(), key).Result()
		if err != nil {
			t.Fatalf("redistest: TTL of %s: %v", key, err)
		}
		if ttl == -1 { // -2: it expired meanwhile
			forever = append(forever, key)
		}
	}
	if len(forever) > 0 {
		t.Fatalf("%d keys that match %s have no TTL: %s", len(forever), pattern, some(forever))
	}
}

func some(keys []string) string {
	const shown = 10
	if len(keys) <= shown {
		return fmt.Sprintf("%q", keys)
	}
	return fmt.Sprintf("%q and %d more", keys[:shown], len(keys)-shown)
}
