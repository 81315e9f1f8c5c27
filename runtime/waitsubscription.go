package smallage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscription is one connection that listens, from its dialling to its end. Where it fails it is not mended but made
// anew, so that what the server knows of it is certain. Fields are guarded by waits.mu unless said otherwise.
type subscription struct {
	notices *notices
	waits   *waits
	ctx     context.Context // of everything here; its cause is why it ended
	end     context.CancelCauseFunc
	pubsub  *redis.PubSub // of one reader and one writer
	poke    chan struct{} // there is something to send

	channels  map[string]bool // asked for; true once the server has confirmed it
	add, drop []string        // to be sent
	leaving   map[string]int  // unsubscribed, and not yet confirmed
	confirmed bool            // the server has answered
	heard     time.Time       // when it last said anything
}

const (
	channelsAtOnce = 100             // in one command
	listenCheck    = 2 * time.Second // how often a silent connection is thought of
	pingAfter      = 5 * time.Second // of silence
	deadAfter      = 12 * time.Second
)

var (
	errSilent     = errors.New("smallage: the connection for notices does not answer")
	errSlotsMoved = errors.New("smallage: the server ended a subscription: its slot has moved")
)

func newSubscription(n *notices) *subscription {
	s := &subscription{
		notices: n, waits: n.lane.waits, poke: make(chan struct{}, 1),
		channels: make(map[string]bool, len(n.wanted)), leaving: map[string]int{}, heard: time.Now(),
	}
	s.ctx, s.end = context.WithCancelCause(s.waits.ctx)
	s.pubsub = n.lane.rdb.Subscribe(s.ctx) // dials with the first channel
	return s
}

// join subscribes to a watch's channel. The watch looks once that is confirmed: what came before is in the key by then.
func (s *subscription) join(v *watch) {
	confirmed, known := s.channels[v.channel]
	v.told = 0
	switch {
	case confirmed:
		s.notices.lane.look(v)
	case !known:
		if s.leaving[v.channel] == 0 {
			v.told = v.joined
		}
		s.channels[v.channel] = false
		s.add = append(s.add, v.channel)
		s.wake()
	}
}

// part unsubscribes from a watch's channel with whatever is sent next: it does no harm until then.
func (s *subscription) part(v *watch) {
	s.drop = append(s.drop, v.channel)
	if len(s.drop) >= channelsAtOnce {
		s.wake()
	}
}

func (s *subscription) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// run speaks and listens until the connection fails, or nobody needs it: then it returns nil.
func (s *subscription) run() error {
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		s.end(s.listen())
	}()
	s.end(s.speak())
	_ = s.pubsub.Close()
	<-listened
	if err := context.Cause(s.ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// quit ends a subscription that nobody needs.
func (s *subscription) quit() { s.end(nil) }

// speak sends what is to be sent until the subscription ends.
func (s *subscription) speak() error {
	check := time.NewTicker(listenCheck)
	defer check.Stop()
	for {
		select {
		case <-s.poke:
			if err := s.send(); err != nil {
				return err
			}
		case <-check.C:
			s.waits.mu.Lock()
			silence := time.Since(s.heard)
			s.waits.mu.Unlock()
			if silence > deadAfter {
				return errSilent
			}
			if silence > pingAfter {
				_ = s.pubsub.Ping(s.ctx) // a failure shows in listen
			}
		case <-s.ctx.Done():
			return nil
		}
	}
}

// send subscribes to what is wanted and not asked for, and unsubscribes from what is asked for and not wanted.
func (s *subscription) send() error {
	n := s.notices
	s.waits.mu.Lock()
	var add, drop []string
	for _, channel := range s.add {
		if n.wanted[channel] != nil {
			add = append(add, channel)
		} else {
			delete(s.channels, channel)
		}
	}
	for _, channel := range s.drop {
		if _, asked := s.channels[channel]; asked && n.wanted[channel] == nil {
			delete(s.channels, channel)
			s.leaving[channel]++
			drop = append(drop, channel)
		}
	}
	s.add, s.drop = nil, nil
	subscribe, unsubscribe := s.pubsub.SSubscribe, s.pubsub.SUnsubscribe
	if n.plain {
		subscribe, unsubscribe = s.pubsub.Subscribe, s.pubsub.Unsubscribe
	}
	size := channelsAtOnce
	if !n.plain && (n.apart || s.waits.cluster() != nil) {
		size = 1
	}
	s.waits.mu.Unlock()
	if len(add) > 0 {
		point("wait-subscribe")
	}
	for chunk := range slices.Chunk(add, size) {
		if err := subscribe(s.ctx, chunk...); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(drop, size) {
		if err := unsubscribe(s.ctx, chunk...); err != nil {
			return err
		}
	}
	return nil
}

// listen takes in what the server says until the connection fails.
func (s *subscription) listen() error {
	for {
		said, err := s.pubsub.Receive(s.ctx)
		if err != nil {
			return err
		}
		switch said := said.(type) {
		case *redis.Subscription:
			err = s.subscribed(said.Kind, said.Channel)
		case *redis.Message:
			point("wait-noticed")
			s.noticed(said.Channel, said.Payload)
		default:
			s.noticed("", "") // a pong
		}
		if err != nil {
			return err
		}
	}
}

// subscribed takes in the confirmation of a subscription or of its end.
func (s *subscription) subscribed(kind, channel string) error {
	begin := kind == "subscribe" || kind == "ssubscribe"
	if begin {
		point("wait-subscribed")
	}
	s.waits.mu.Lock()
	defer s.waits.mu.Unlock()
	s.heard, s.confirmed = time.Now(), true
	if !begin {
		switch {
		case s.leaving[channel] > 1:
			s.leaving[channel]--
		case s.leaving[channel] == 1:
			delete(s.leaving, channel)
		case channel != "":
			return errSlotsMoved
		}
		return nil
	}
	if _, asked := s.channels[channel]; asked {
		s.channels[channel] = true
		if v := s.notices.wanted[channel]; v != nil {
			s.notices.lane.look(v)
		}
	}
	return nil
}

// noticed tells the waits for a channel's job the outcome that a notice carries, or has them looked for where it carries
// none, or where it may have been published before they began.
func (s *subscription) noticed(channel, notice string) {
	s.waits.mu.Lock()
	defer s.waits.mu.Unlock()
	s.heard = time.Now()
	v := s.notices.wanted[channel]
	if v == nil {
		return
	}
	if res := decodeResult(v.id, unpackFields(notice)); res.Missing() {
		s.notices.lane.look(v)
	} else {
		s.waits.found(v, res, v.told)
	}
}
