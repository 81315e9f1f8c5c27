package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a program that was started for the measurements and ends with them.
type server struct {
	cmd *exec.Cmd
	dir string
}

// launch runs a program that dies with this one.
func launch(dir string, as *syscall.Credential, program string, args ...string) (*server, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: as}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &server{cmd, dir}, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// startRedis runs a server without persistence unless args say otherwise.
func startRedis(ctx context.Context, args ...string) (*server, string, error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp("", "smallage-bench-redis-")
	if err != nil {
		return nil, "", err
	}
	program := os.Getenv("SMALLAGE_REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	s, err := launch(dir, nil, program, append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
	}, args...)...)
	if err != nil {
		return nil, "", fmt.Errorf("start %s: %w", program, err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(port)
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	return s, addr, until(10*time.Second, func() error { return rdb.Ping(ctx).Err() })
}

// startCluster runs masters that share the slots evenly.
func startCluster(ctx context.Context) (servers []*server, addrs []string, err error) {
	for range testMasters {
		s, addr, err := startRedis(ctx, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
		if s != nil {
			servers = append(servers, s)
		}
		if err != nil {
			return servers, nil, err
		}
		addrs = append(addrs, addr)
	}
	for i, addr := range addrs {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = rdb.Close() }()
		if err := rdb.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			return servers, nil, err
		}
		if err := rdb.ClusterAddSlotsRange(ctx, i*slots/testMasters, (i+1)*slots/testMasters-1).Err(); err != nil {
			return servers, nil, err
		}
		host, port, _ := net.SplitHostPort(addrs[0])
		if err := rdb.ClusterMeet(ctx, host, port).Err(); err != nil {
			return servers, nil, err
		}
	}
	for _, addr := range addrs {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = rdb.Close() }()
		err := until(20*time.Second, func() error {
			info, err := rdb.ClusterInfo(ctx).Result()
			if err == nil && !strings.Contains(info, "cluster_state:ok") {
				err = errors.New("the cluster is not ready")
			}
			return err
		})
		if err != nil {
			return servers, nil, err
		}
	}
	return servers, addrs, nil
}

// until tries again and again for a while.
func until(limit time.Duration, try func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := try()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

var errNoPostgres = errors.New("not installed")

// startPostgres runs PostgreSQL with its own defaults, which are durable. It does not run as root, so that root needs
// its package's user. The version is what its program says of itself.
func startPostgres() (s *server, dsn, version string, err error) {
	bin := ""
	if found, err := exec.LookPath("initdb"); err == nil {
		bin = filepath.Dir(found)
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb", "/usr/local/pgsql/bin/initdb"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			bin = filepath.Dir(found[len(found)-1])
		}
	}
	if bin == "" {
		return nil, "", "", errNoPostgres
	}
	dir, err := os.MkdirTemp("", "smallage-bench-postgres-")
	if err != nil {
		return nil, "", "", err
	}
	var as *syscall.Credential
	if os.Getuid() == 0 {
		owner, err := user.Lookup("postgres")
		if err != nil {
			return nil, "", "", fmt.Errorf("%w for a user other than root: %w", errNoPostgres, err)
		}
		uid, _ := strconv.Atoi(owner.Uid)
		gid, _ := strconv.Atoi(owner.Gid)
		as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, "", "", err
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "postgres")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, "", "", fmt.Errorf("initdb: %w: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		return nil, "", "", err
	}
	said, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return nil, "", "", fmt.Errorf("postgres --version: %w", err)
	}
	s, err = launch(dir, as, filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-k", dir)
	if err != nil {
		return nil, "", "", err
	}
	addr := "127.0.0.1:" + strconv.Itoa(port)
	dsn = "postgres://postgres@" + addr + "/postgres?sslmode=disable"
	return s, dsn, strings.TrimSpace(string(said)), until(20*time.Second, func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}
