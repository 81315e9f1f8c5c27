package smallage

import "time"

// renewLeases renews the lease of every entry in hand, read ahead or running, for as long as the session lives.
func (s *session) renewLeases(stop <-chan struct{}) {
	ticker := time.NewTicker(s.heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			s.renewAll()
			s.reportStuck()
		}
	}
}

// reportStuck tells of handlers that go on although their context has ended: they keep their slot and lease.
func (s *session) reportStuck() {
	for _, d := range s.hold.stuck() {
		s.log.Warn("smallage: a handler goes on although its context has ended; it keeps its slot until it returns",
			"task", d.env.task, "job", d.env.id, "queue", d.queue.name)
		s.observe(Event{Kind: EventStuck, Job: d.info()})
	}
}

func (s *session) renewAll() {
	var calls []*scriptCall
	var queues []*queueState
	var lists [][]*delivery
	for _, q := range s.hold.queues {
		list := s.hold.inHand(q)
		args := []any{s.consumer, (s.cfg.Lease / 2).Milliseconds()}
		for _, d := range list {
			args = append(args, d.entry)
		}
		calls = append(calls, newCall(renewScript, []string{q.keys.stream}, args...))
		queues = append(queues, q)
		lists = append(lists, list)
	}
	point("renewing")
	sent := time.Now()
	runScripts(s.base, s.rdb, calls)
	point("renewed")
	for i, c := range calls {
		if c.err != nil {
			s.outage.failed(c.err)
			continue
		}
		lost := map[string]bool{}
		for _, id := range replyList(replyAt(c.reply, 0)) {
			lost[replyText(id)] = true
		}
		for _, d := range lists[i] {
			if lost[d.entry] {
				if d := s.hold.lose(queues[i], d.entry); d != nil {
					s.leaseLost(d)
				}
				continue
			}
			d.renewed.Store(since(sent))
		}
		// A connection that broke while a read was answered leaves entries that this consumer holds without knowing.
		s.hold.add(queues[i], s.takenEntries(queues[i], replyAt(c.reply, 1), sent), -1)
	}
	s.keepClaims(lists)
}

func (s *session) leaseLost(d *delivery) {
	s.log.Warn("smallage: lost the lease of a job; another worker may run it, and this one's ending of it is ignored",
		"task", d.env.task, "job", d.env.id, "queue", d.queue.name)
	s.observe(Event{Kind: EventLeaseLost, Job: d.info()})
}

// keepClaims renews the dedup claims of running jobs once less than half is left.
func (s *session) keepClaims(lists [][]*delivery) {
	var calls []*scriptCall
	var claimed []*delivery
	for _, list := range lists {
		for _, d := range list {
			if d.claimed.Load() && !d.ending.Load() {
				ttl := s.claimTTL(d, 0)
				calls = append(calls, newCall(extendScript, []string{s.keys.dedup(d.env.dedup)},
					d.env.id.String(), ttl.Milliseconds(), (ttl/2).Milliseconds()))
				claimed = append(claimed, d)
			}
		}
	}
	if len(calls) == 0 {
		return
	}
	runScripts(s.base, s.rdb, calls)
	for i, c := range calls {
		if c.err != nil {
			s.outage.failed(c.err)
			continue
		}
		if state := replyText(c.reply); state != "kept" && claimed[i].claimed.CompareAndSwap(true, false) {
			s.claimLost(claimed[i], state)
		}
	}
}

// claimTTL is how long a claim must live: the window, or twice the lease where that is longer, plus a delay to come.
func (s *session) claimTTL(d *delivery, delay time.Duration) time.Duration {
	return max(s.dedupTTL(d), 2*s.cfg.Lease) + delay
}

func (s *session) dedupTTL(d *delivery) time.Duration {
	if d.task != nil && d.task.dedupTTL > 0 {
		return d.task.dedupTTL
	}
	return s.cfg.DedupTTL
}

// claimLost reports a claim that is gone ("lost") or another job's while its job runs: the job runs on.
func (s *session) claimLost(d *delivery, state string) {
	owner := ownerOf(state)
	s.log.Warn("smallage: the dedup claim of a running job is lost; the job runs on, but a duplicate may run beside it",
		"task", d.env.task, "job", d.env.id, "key", shorten(d.env.dedup), "holder", owner)
	s.observe(Event{Kind: EventClaimLost, Job: d.info(), Key: d.env.dedup, Owner: owner})
}
