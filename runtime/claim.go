package smallage

import (
	"fmt"
	"time"
)

// claim takes the job's dedup key, or ends the job where another holds it. A Redis error is no duplicate: it is tried
// again for as long as the entry is this worker's.
func (s *session) claim(d *delivery) bool {
	key, id := s.keys.dedup(d.env.dedup), d.env.id.String()
	for {
		point("claiming")
		ttl := s.claimTTL(d, 0).Milliseconds()
		var state string
		var reply any
		var err error
		if d.first() {
			// Mostly nobody holds the key. A plain command then does what the script does, and costs Redis half as much.
			if reply, err = s.scripts.run(plainCall("SET", key, "claimed:"+id, "NX", "PX", ttl)); reply != nil {
				state = "claimed"
			}
		}
		if state == "" && err == nil {
			reply, err = s.scripts.run(newCall(claimScript, []string{key}, id, ttl))
			state = replyText(replyAt(reply, 0))
		}
		if err != nil {
			if !s.holdOn(d, err) || !s.confirmLease(d) {
				return false
			}
			continue
		}
		switch state {
		case "claimed":
			s.claimMissing(d, "the job claims it anew", JobID{})
			d.claimed.Store(true)
			if !s.confirmLease(d) {
				s.freeClaimOfEnded(d)
				return false
			}
			return true
		case "again":
			d.claimed.Store(true)
			return s.confirmLease(d)
		case "done":
			s.endings.already(d)
		default:
			owner := ownerOf(replyText(replyAt(reply, 1)))
			s.claimMissing(d, "another job has claimed it since, so this one is a duplicate", owner)
			s.endings.end(d, &verdict{
				Status: StatusDuplicate, Owner: owner.String(), Runs: d.env.attempt - 1, History: d.env.history,
				Error: fmt.Sprintf("job %s holds the dedup key %q", owner, shorten(d.env.dedup)),
			}, nil)
		}
		return false
	}
}

// freeClaimOfEnded undoes a claim that this worker, frozen before it was sent, has made for a job that another has ended
// meanwhile. Nobody else would: the job would hold its key for the rest of the window. Where the entry is still there
// and no ending under way, the job runs elsewhere and needs the claim, as does one that waits for its next attempt.
func (s *session) freeClaimOfEnded(d *delivery) {
	k := d.queue.keys
	pipe := s.rdb.Pipeline()
	entry := pipe.XRange(s.base, k.stream, d.entry, d.entry)
	ending := pipe.HExists(s.base, k.verdict, d.entry)
	delayed := pipe.HExists(s.base, k.delayedJobs, d.env.id.String())
	if _, err := pipe.Exec(s.base); err != nil {
		s.outage.failed(err)
		return
	}
	if len(entry.Val()) > 0 && !ending.Val() || delayed.Val() {
		return
	}
	if _, err := s.scripts.run(newCall(unclaimScript, []string{s.keys.dedup(d.env.dedup)}, d.env.id.String())); err != nil {
		s.outage.failed(err)
	}
}

// claimMissing reports a claim that should have been there. A job that ran before had one; a job that was lost with its
// worker had one only if it had started, which nobody can tell any more.
func (s *session) claimMissing(d *delivery, then string, owner JobID) {
	if d.first() {
		return
	}
	facts := []any{"task", d.env.task, "job", d.env.id, "key", shorten(d.env.dedup), "holder", owner}
	if d.env.attempt == 1 {
		s.log.Info("smallage: the dedup claim of a job was lost, or its worker died before it started the job; "+then, facts...)
		return
	}
	s.log.Warn("smallage: the dedup claim of a job was lost between its attempts; "+then, facts...)
	s.observe(Event{Kind: EventClaimLost, Job: d.info(), Key: d.env.dedup, Owner: owner})
}

// isDone reports whether the key says that this very job is done: nothing may then end it in another way. ok is false
// where the entry was let go instead, because Redis stayed away.
func (s *session) isDone(d *delivery) (done, ok bool) {
	if d.env.dedup == "" || d.env.id.IsZero() {
		return false, true
	}
	for {
		value, err := s.rdb.Get(s.base, s.keys.dedup(d.env.dedup)).Result()
		if err == nil || isNilReply(err) {
			return value == doneBy(d.env.id), true
		}
		if !s.holdOn(d, err) {
			return false, false
		}
	}
}

func doneBy(id JobID) string { return "done:" + id.String() }

// claimTTL is how long a claim must live: the window, or long enough for a takeover where that is longer, plus a delay
// to come. A takeover happens up to two ticks after the lease ran out.
func (s *session) claimTTL(d *delivery, delay time.Duration) time.Duration {
	return max(s.dedupTTL(d), 2*s.cfg.Lease+2*tickEvery) + delay
}

// claimFloor is the rest of a claim below which it is renewed: half, or what a takeover from now on takes.
func (s *session) claimFloor(ttl time.Duration) time.Duration {
	return max(ttl/2, s.cfg.Lease*3/2+2*tickEvery)
}

// dedupTTL is the window of the job's task.
func (s *session) dedupTTL(d *delivery) time.Duration {
	if d.task != nil && d.task.dedupTTL > 0 {
		return d.task.dedupTTL
	}
	return s.cfg.DedupTTL
}

// keepClaims renews the dedup claims of running jobs, each once less than its floor is left.
func (s *session) keepClaims(lists [][]*delivery) {
	var calls []*scriptCall
	var claimed []*delivery
	for _, list := range lists {
		for _, d := range list {
			if d.claimed.Load() && !d.ending.Load() && !d.lost.Load() {
				ttl := s.claimTTL(d, 0)
				calls = append(calls, newCall(extendScript, []string{s.keys.dedup(d.env.dedup)},
					d.env.id.String(), ttl.Milliseconds(), s.claimFloor(ttl).Milliseconds()))
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
		state := replyText(c.reply)
		if state == "kept" || state == doneBy(claimed[i].env.id) { // done since the list was made
			continue
		}
		if claimed[i].claimed.CompareAndSwap(true, false) {
			s.claimLost(claimed[i], state)
		}
	}
}

// claimLost reports a claim that is gone ("lost") or another job's while its job runs: the job runs on.
func (s *session) claimLost(d *delivery, state string) {
	owner := ownerOf(state)
	s.log.Warn("smallage: the dedup claim of a running job is lost; the job runs on, but a duplicate may run beside it",
		"task", d.env.task, "job", d.env.id, "key", shorten(d.env.dedup), "holder", owner)
	s.observe(Event{Kind: EventClaimLost, Job: d.info(), Key: d.env.dedup, Owner: owner})
}
