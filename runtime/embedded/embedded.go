// Package embedded runs a Redis stand-in inside the application's own process, so that development and first steps need
// nothing installed: no server, no container. It is not for production: everything is in memory and gone with the
// process, and one lock serves all commands.
//
// It understands the commands and the Lua that Smallage uses, and its clock runs: TTLs, leases, delays and windows pass
// in real time. Known differences from Redis, none of which changes what Smallage does:
//
//   - XCLAIM takes an entry however short its idle time is, JUSTID counts a delivery unless RETRYCOUNT is given, and an
//     entry that was deleted from the stream stays pending when it is claimed; so it does with XAUTOCLAIM.
//   - An entry that was deleted is left out where a consumer reads its own pending entries again, instead of being
//     named without fields.
//   - LMOVE of a list's only element onto itself loses the list's TTL. BLMOVE, which Smallage uses, keeps it.
//   - Timeouts of blocking commands end to the millisecond. Redis looks at them up to a tenth of a second late.
//   - In Lua, cjson replaces bytes that are not UTF-8, writes an empty table as a list, and returns nil for bad JSON
//     instead of failing; there are no bit, cmsgpack and struct; unpack ends at about 5,000 values instead of 8,000.
//   - Channels within a shard (SPUBLISH, SSUBSCRIBE) are missing; Smallage takes plain ones then.
//   - CONFIG, INFO but for clients and stats, CLIENT ID, XGROUP SETID, ACLs, persistence, replication and clusters are
//     missing: a script that touches two slots is not refused. Tests of those need a real server.
//
// Only programs that import this package link the stand-in.
package embedded

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Config says how to start a server. Its zero value works.
type Config struct {
	// Addr is where to listen, host and port; the host must be a loopback address, since nobody is asked for a password.
	// Empty means a free port of 127.0.0.1. A fixed port lets several processes of one developer share the server.
	Addr string

	// Logger gets the one line that Start writes. nil writes it to standard error as plain text.
	Logger *slog.Logger
}

// Server is a running stand-in. It is safe for concurrent use.
type Server struct {
	redis  *miniredis.Miniredis
	addr   string
	close  sync.Once
	mu     sync.Mutex
	closed bool
	rdbs   []*redis.Client
}

// Start runs a server until Close. It says in one line that the server is for development and keeps nothing.
// It returns an error where the address is not a loopback address or cannot be listened on.
func Start(cfg Config) (*Server, error) {
	addr := cfg.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	if err := checkLoopback(addr); err != nil {
		return nil, err
	}
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true) // its clock would stand still otherwise, and nothing would ever expire
	if err := m.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("embedded server: listen on %s: %w; leave Config.Addr empty for a free port", addr, err)
	}
	s := &Server{redis: m, addr: m.Addr()}
	if cfg.Logger != nil {
		cfg.Logger.Warn("smallage: embedded server is for development only and keeps nothing", "addr", s.addr)
	} else {
		fmt.Fprintf(os.Stderr, "smallage: embedded server on %s: for development only, keeps nothing\n", s.addr)
	}
	return s, nil
}

func checkLoopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("embedded server: address %q: %w; use host:port such as 127.0.0.1:6379", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("embedded server: address %q: it asks nobody for a password, so it listens on loopback addresses only, "+
			"such as 127.0.0.1:6379", addr)
	}
	return nil
}

// Addr returns where the server listens, as host:port.
func (s *Server) Addr() string { return s.addr }

// Options returns settings for a client of this server, for the caller to change.
func (s *Server) Options() *redis.Options { return &redis.Options{Addr: s.addr} }

// Client returns a new client of this server. Close closes it too; closing it earlier is fine.
func (s *Server) Client() *redis.Client {
	rdb := redis.NewClient(s.Options())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = rdb.Close() // its commands then say that it is closed, instead of dialling a port that may be somebody else's
	} else {
		s.rdbs = append(s.rdbs, rdb)
	}
	return rdb
}

// Close ends the server, with its connections, the commands that block on it, and the clients that Client returned.
// It may be called more than once, and returns once all of that has ended.
func (s *Server) Close() {
	s.close.Do(func() {
		s.mu.Lock()
		s.closed = true
		rdbs := s.rdbs
		s.mu.Unlock()
		for _, rdb := range rdbs {
			_ = rdb.Close()
		}
		s.redis.Close()
	})
}
