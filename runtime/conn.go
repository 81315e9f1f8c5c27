package smallage

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// blockingClient returns a client to the same Redis with a pool of its own, for commands that block: they must not take
// connections from the application, nor be ended by its read timeout. A client of a type that cannot be copied is used
// as it is. onConnect, where not nil, is called for each new connection to a single server.
func blockingClient(rdb redis.UniversalClient, conns int, longest time.Duration, onConnect func(context.Context, *redis.Conn)) (client redis.UniversalClient, closed func() error) {
	const slack = 5 * time.Second // for a slow reply after the block ended
	switch rdb := rdb.(type) {
	case *redis.Client:
		opt := *rdb.Options()
		opt.MaxRetries = -1 // a lost reply must be known to be lost
		opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = conns, 0, 0, 0
		opt.PoolTimeout = longest + slack
		opt.ReadTimeout = longest + slack
		opt.ContextTimeoutEnabled = false
		opt.PushNotificationProcessor, opt.MaintNotificationsConfig = nil, noMaintNotifications() // belong to the client given
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
		c := redis.NewClient(&opt)
		return c, c.Close
	case *redis.ClusterClient:
		opt := *rdb.Options()
		opt.PoolSize, opt.MinIdleConns, opt.MaxIdleConns, opt.MaxActiveConns = conns, 0, 0, 0
		opt.PoolTimeout = longest + slack
		opt.ReadTimeout = longest + slack
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
