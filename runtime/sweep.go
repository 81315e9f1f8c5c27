package smallage

import "time"

// sweep removes now and then what dead workers leave in Redis, and names the queues in the registry, which a flush may
// have emptied. All workers of a queue share one gate, so their number does not matter.
func (s *session) sweep(stop <-chan struct{}) {
	every := min(max(2*s.cfg.Lease, time.Second), time.Minute)
	gone := max(2*s.cfg.Lease, 5*time.Second)
	timer := time.NewTicker(every)
	defer timer.Stop()
	for {
		names := make([]any, len(s.queues))
		for i, name := range s.queues {
			names[i] = name
		}
		if err := s.rdb.SAdd(s.base, s.keys.registry(), names...).Err(); err != nil {
			s.outage.failed(err)
		}
		for _, q := range s.hold.queues {
			k := q.keys
			reply, err := sweepScript.run(s.base, s.rdb,
				[]string{k.stream, k.workers, k.sweep, k.verdict, k.dead, k.deadJobs, k.deadIDs},
				every.Milliseconds(), gone.Milliseconds(), s.cfg.MaxDeadAge.Milliseconds())
			if err != nil {
				s.outage.failed(err)
				break
			}
			if old := int(replyNumber(replyAt(reply, 1))); old > 0 {
				s.log.Warn("smallage: dead jobs beyond their age were dropped", "queue", q.name, "dropped", old, "age", s.cfg.MaxDeadAge)
				s.observe(Event{Kind: EventDropped, Job: JobInfo{Queue: q.name}, Count: old})
			}
		}
		select {
		case <-stop:
			return
		case <-timer.C:
		}
	}
}
