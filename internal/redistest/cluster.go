package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster of three masters without replicas.
type Cluster struct {
	t testing.TB

	// Servers are the masters, in the order of their slots: each has a third. They may be stopped, paused and started
	// again like any other; the cluster then misses their slots.
	Servers []*Server
}

const (
	masters = 3
	slots   = 16384
)

// StartCluster runs a cluster until the test ends, and returns once every master knows all slots to be served. A command
// or script whose keys are not in one slot fails on it with CROSSSLOT.
func StartCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range masters {
		all := append([]Option{Args(
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "5000",
		)}, opts...)
		c.Servers = append(c.Servers, Start(t, all...))
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := c.join(ctx); err != nil {
		t.Fatalf("redistest: cluster: %v", err)
	}
	return c
}

// Addrs returns the addresses of the masters.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, s := range c.Servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Client returns a new client with go-redis's default settings; it is closed when the test ends.
func (c *Cluster) Client() *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	c.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (c *Cluster) join(ctx context.Context) error {
	var nodes []*redis.Client
	defer func() {
		for _, node := range nodes {
			_ = node.Close()
		}
	}()
	for i, s := range c.Servers {
		node := redis.NewClient(&redis.Options{Addr: s.Addr()})
		nodes = append(nodes, node)
		// Distinct epochs from the start save the nodes an election among equals.
		if err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return fmt.Errorf("epoch of %s: %w", s.Addr(), err)
		}
		if err := node.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err(); err != nil {
			return fmt.Errorf("slots of %s: %w", s.Addr(), err)
		}
		if i > 0 {
			if err := nodes[0].ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(s.port)).Err(); err != nil {
				return fmt.Errorf("introduce %s: %w", s.Addr(), err)
			}
		}
	}
	// Nothing announces the end of the handshakes, so each node is asked until it is content.
	ask := time.NewTicker(10 * time.Millisecond)
	defer ask.Stop()
	for i, node := range nodes {
		for {
			info, err := node.ClusterInfo(ctx).Result()
			if err != nil {
				return fmt.Errorf("state of %s: %w", c.Servers[i].Addr(), err)
			}
			if strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(masters)) &&
				strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(slots)) {
				break
			}
			select {
			case <-ask.C:
			case <-ctx.Done():
				return fmt.Errorf("%s has not joined after %v:\n%s", c.Servers[i].Addr(), startLimit, info)
			}
		}
	}
	return nil
}
