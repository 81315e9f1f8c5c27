package main

import (
	"context"
	"time"
)

// benchmark is one run of the command.
type benchmark struct {
	size     size
	profile  string
	began    time.Time
	rounds   int           // that have ended
	again    time.Duration // what a further round takes
	rows     []row
	servers  []*server
	redis    map[string]string // address by the policy of its append-only file
	cluster  []string
	postgres string
	version  string // of PostgreSQL
	missing  string // why there is no PostgreSQL
	made     *madeModule
	found    map[cell][]metrics
	failed   []string
}

type cell struct{ row, who string }

func (b *benchmark) start(ctx context.Context) error {
	if err := b.startRedis(ctx, ""); err != nil {
		return err
	}
	for _, r := range b.rows {
		if r.generate != "" && b.made == nil {
			var err error
			if b.made, err = makeModule(ctx); err != nil {
				return err
			}
		}
		if err := b.startRedis(ctx, r.fsync); err != nil {
			return err
		}
		if r.order.Features.Cluster && b.cluster == nil {
			servers, addrs, err := startCluster(ctx)
			b.keep(servers...)
			if err != nil {
				return err
			}
			b.cluster = addrs
		}
		for _, name := range r.who {
			if name == "river" && b.postgres == "" && b.missing == "" {
				s, dsn, version, err := startPostgres()
				b.keep(s)
				if err != nil {
					b.missing = err.Error()
				} else {
					b.postgres, b.version = dsn, version
				}
			}
		}
	}
	return nil
}

// startRedis makes sure of a server with an append-only file of that policy, or with none.
func (b *benchmark) startRedis(ctx context.Context, fsync string) error {
	if b.redis[fsync] != "" {
		return nil
	}
	var args []string
	if fsync != "" { // a rewrite would hit one contender by chance
		args = []string{"--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0"}
	}
	s, addr, err := startRedis(ctx, args...)
	b.keep(s)
	b.redis[fsync] = addr
	return err
}

func (b *benchmark) keep(servers ...*server) {
	for _, s := range servers {
		if s != nil {
			b.servers = append(b.servers, s)
		}
	}
}

func (b *benchmark) stop() {
	for _, s := range b.servers {
		s.stop()
	}
	b.made.remove()
}
