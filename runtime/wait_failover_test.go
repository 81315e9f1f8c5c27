package smallage_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/smallage/smallage/internal/redistest"
	smallage "github.com/smallage/smallage/runtime"
)

// startSentinel watches a master under the name "main", and returns its own address.
func startSentinel(t *testing.T, master *redistest.Server) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("this test needs redis-server itself on PATH, to run it as a sentinel")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	_, masterPort, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	dir := t.TempDir()
	conf := filepath.Join(dir, "sentinel.conf") // a sentinel keeps its state there
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil,
		"port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor main 127.0.0.1 %s 1\nsentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n",
		port, dir, masterPort), 0o600))
	cmd := exec.Command(program, conf, "--sentinel")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return addr
}

func TestAWaitOutlivesAFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	_, port, err := net.SplitHostPort(master.Addr())
	require.NoError(t, err)
	replica := redistest.Start(t, redistest.Args("--replicaof", "127.0.0.1", port))
	addr := startSentinel(t, master)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = sentinel.Close() })
	eventually(t, func() bool {
		found, err := sentinel.Master(t.Context(), "main").Result()
		n, _ := strconv.Atoi(found["num-slaves"])
		return err == nil && n == 1
	}, "the sentinel knows the replica")
	eventually(t, func() bool {
		replicas, err := sentinel.Replicas(t.Context(), "main").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	}, "the replica is in step")

	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{addr}})
	t.Cleanup(func() { _ = rdb.Close() })
	token := newWaitBench(t, rdb, 16)
	notices := *token // the same namespace by other means
	notices.client, err = smallage.NewClient(rdb, smallage.ClientConfig{Namespace: token.ns, MaxWaitConns: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, notices.client.Close()) })
	early, late := mustID(t), mustID(t)
	waits := []chan waited{token.wait(t.Context(), late, time.Minute), notices.wait(t.Context(), late, time.Minute)}
	token.mustEnd(early, smallage.StatusOK, "value", "kept")
	require.NoError(t, rdb.Wait(t.Context(), 1, 10*time.Second).Err(), "the replica has it")
	watch := master.Client()
	eventually(t, func() bool { return listening(watch, 2) }, "they listen")

	require.NoError(t, sentinel.Failover(t.Context(), "main").Err())
	promoted := replica.Client()
	eventually(t, func() bool {
		role, err := promoted.Do(t.Context(), "ROLE").Slice()
		return err == nil && len(role) > 0 && role[0] == "master"
	}, "the replica is the master")
	direct := &waitBench{t: t, rdb: promoted, ns: token.ns}
	direct.mustEnd(late, smallage.StatusOK, "value", "v")
	ended := time.Now()
	for _, done := range waits {
		got := <-done
		require.NoError(t, got.err)
		require.Equal(t, "v", string(got.res.Value))
	}
	t.Logf("answered %v after the outcome was written on the new master", time.Since(ended))
	require.Less(t, time.Since(ended), 30*time.Second)
	res, err := token.client.Wait(t.Context(), early, 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, "kept", string(res.Value))
}
