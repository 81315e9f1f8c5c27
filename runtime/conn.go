package smallage

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// blockSlack is for a slow reply after a block has ended.
const blockSlack = 5 * time.Second

// connOptions are the settings of a client to the same server for commands that block for longest at most. What belongs
// to the client given alone, its cache and its push messages, is left out.
func connOptions(rdb *redis.Client, conns int, longest time.Duration) *redis.Options {
	opt := *rdb.Options()
	opt.MaxRetries = -1 // a lost reply must be known to be lost
	opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = conns, 0, 0, 0
	opt.PipelinePoolSize = -1 // nothing is pipelined
	opt.PoolTimeout = longest + blockSlack
	opt.ReadTimeout = longest + blockSlack
	opt.ContextTimeoutEnabled = false
	opt.PushNotificationProcessor, opt.MaintNotificationsConfig = nil, noMaintNotifications()
	opt.ClientSideCache, opt.ClientSideCacheConfig = nil, nil
	return &opt
}

// blockingClient returns a client to the same Redis with a pool of its own, for commands that block: they must not take
// connections from the application, nor be ended by its read timeout. A client of a type that cannot be copied is used
// as it is. onConnect, where not nil, is called for each new connection to a single server.
func blockingClient(rdb redis.UniversalClient, conns int, longest time.Duration, onConnect func(context.Context, *redis.Conn)) (client redis.UniversalClient, closed func() error) {
	switch rdb := rdb.(type) {
	case *redis.Client:
		opt := connOptions(rdb, conns, longest)
		if theirs := opt.OnConnect; onConnect != nil {
			opt.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
				if theirs != nil {
					if err := theirs(ctx, conn); err != nil {
						return err
					}
				}
				onConnect(ctx, conn)
				return nil
			}
		}
		c := redis.NewClient(opt)
		return c, c.Close
	case *redis.ClusterClient:
		opt := *rdb.Options()
		opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = conns, 0, 0, 0
		opt.PoolTimeout = longest + blockSlack
		opt.ReadTimeout = longest + blockSlack
		opt.ContextTimeoutEnabled = false
		opt.PushNotificationProcessor, opt.MaintNotificationsConfig = nil, noMaintNotifications()
		opt.ReadOnly, opt.RouteByLatency, opt.RouteRandomly = false, false, false
		c := redis.NewClusterClient(&opt)
		return c, c.Close
	}
	return rdb, func() error { return nil }
}

func noMaintNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
