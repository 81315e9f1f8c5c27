package smallage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// session is one Run of a worker: a consumer of its own, and everything that ends with it.
type session struct {
	*Worker
	consumer string
	block    time.Duration         // of one read
	reading  redis.UniversalClient // for blocking reads, one connection per queue
	ticking  redis.UniversalClient // for ticks, which like reads must know of lost replies
	hold     *hold
	endings  *endings
	scripts  *coalescer // for calls that a runner waits for
	outage   *outageLog
	unblock  unblocker
	handler  Handler // innermost call wrapped by the middleware

	base      context.Context // Run's values without its end: for everything that a drain must still do
	stopping  <-chan struct{} // Run's context ended
	heartbeat time.Duration
	runners   sync.WaitGroup
}

func newSession(w *Worker, ctx context.Context) *session {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails: it crashes the program instead
	s := &session{
		Worker:    w,
		consumer:  w.cfg.Name + "-" + hex.EncodeToString(random[:]),
		base:      context.WithoutCancel(ctx),
		stopping:  ctx.Done(),
		heartbeat: min(w.cfg.Lease/4, 10*time.Second),
		block:     longestBlock,
		outage:    &outageLog{log: w.log, what: "worker " + w.cfg.Name},
	}
	s.hold = newHold(w)
	s.endings = newEndings(s)
	s.scripts = newCoalescer(s.base, w.rdb)
	s.handler = callHandler
	for i := len(w.cfg.Middleware) - 1; i >= 0; i-- {
		s.handler = w.cfg.Middleware[i](s.handler)
	}
	return s
}

// run lives until ctx ended and everything is drained.
func (s *session) run(ctx context.Context) error {
	var closeReading, closeTicking func() error
	s.reading, closeReading = blockingClient(s.rdb, len(s.queues), longestBlock, s.unblock.connected)
	s.ticking, closeTicking = blockingClient(s.rdb, len(s.queues), 0, nil)
	defer func() { _, _ = closeReading(), closeTicking() }()
	if _, single := s.reading.(*redis.Client); !single || s.reading == s.rdb {
		for _, q := range s.hold.queues {
			q.strayed.Store(-1) // this client sends again by itself, and so hides lost replies
		}
		s.unblock.known.Store(true) // its connections cannot be told apart, so its reads are not unblocked
	}
	s.log.Info("smallage: worker starts", "consumer", s.consumer, "queues", s.queues, "concurrency", s.cfg.Concurrency)

	var readers, background sync.WaitGroup
	for _, q := range s.hold.queues {
		readers.Go(func() { s.read(ctx, q) })
		readers.Go(func() { s.tickAlways(ctx, q) })
	}
	for range s.cfg.Concurrency {
		s.startRunner()
	}
	stopBackground := make(chan struct{})
	background.Go(func() { s.renewLeases(stopBackground) })
	background.Go(func() { s.endings.run(stopBackground) })
	background.Go(func() { s.sweep(stopBackground) })

	<-ctx.Done()
	point("stopping")
	s.drain(&readers)
	close(stopBackground)
	background.Wait()
	s.scripts.close()
	point("leaving")
	s.leave()
	point("left")
	s.hold.endAll(ErrShutdown)
	s.log.Info("smallage: worker stopped", "consumer", s.consumer)
	return nil
}

// drain ends the work: unstarted entries go back at once, running handlers get DrainTimeout, a cancel, and a second.
func (s *session) drain(readers *sync.WaitGroup) {
	s.handBack(s.hold.closeUnstarted())
	point("handed-back")
	finished := make(chan struct{})
	go func() {
		s.unblock.until(s, readers)
		s.handBack(s.hold.closeUnstarted()) // what a read brought in the meantime
		s.runners.Wait()
		s.endings.idle()
		close(finished)
	}()
	if waitFor(finished, s.cfg.DrainTimeout) {
		return
	}
	s.hold.endAll(ErrShutdown)
	if waitFor(finished, giveUpAfter) {
		return
	}
	for _, d := range s.hold.abandon() {
		s.log.Warn("smallage: handler ignores its cancelled context; its job is handed back and may overlap with its next run",
			"task", d.env.task, "job", d.env.id, "queue", d.queue.name)
	}
	waitFor(finished, giveUpAfter) // endings of those that did return
}

func waitFor(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// handBack gives unstarted entries to whoever ticks next. Where Redis does not answer, their leases run out instead.
func (s *session) handBack(unstarted map[*queueState][]*delivery) {
	for q, list := range unstarted {
		args := []any{s.consumer, "some"}
		for _, d := range list {
			d.ending.Store(true) // a renewal that finds it gone must not take it for lost
			args = append(args, d.entry)
		}
		if _, err := releaseScript.run(s.base, s.rdb, []string{q.keys.stream, q.keys.workers}, args...); err != nil {
			s.outage.failed(err)
		}
		for _, d := range list {
			s.observe(Event{Kind: EventReleased, Job: d.info()})
		}
		s.hold.drop(list...)
	}
}

// leave hands back whatever this consumer still holds, and removes it.
func (s *session) leave() {
	for _, q := range s.hold.queues {
		if _, err := releaseScript.run(s.base, s.rdb, []string{q.keys.stream, q.keys.workers}, s.consumer, "leave"); err != nil {
			s.outage.failed(err)
			return
		}
	}
}

func (s *session) observe(e Event) {
	if s.cfg.Observer != nil {
		s.cfg.Observer.Observe(e)
	}
}
