package smallage

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// entry is a stream entry as it was read: its fields in order, name and value. Its texts are parts of the whole reply, in
// a buffer that is used again: whoever keeps one copies it.
type entry struct {
	id     []byte
	fields [][]byte
}

// streamRead is one read of a queue, by itself or behind a flush of endings. received must get it once it was sent.
type streamRead struct {
	q       *queueState
	room    int           // entries at most, as they were reserved
	covered int           // of the room, by entries that are acknowledged before the read
	block   time.Duration // negative: not at all
	made    time.Time
	buffer  *readBuffer
	entries *redis.RawWriteToCmd
	marks   *redis.ZSliceCmd // the cancel marks since the newest known; nil where they are not asked for
}

// newRead makes a read. Its reply is kept as it came: go-redis would make a map of each entry, which costs more than
// everything else that is done with it until its handler is called.
func (s *session) newRead(q *queueState, room int, block time.Duration, marks bool) *streamRead {
	r := &streamRead{q: q, room: room, block: block, made: time.Now(), buffer: getReadBuffer(q.replySize(room))}
	args := append(make([]any, 0, 12), "XREADGROUP", "GROUP", group, s.consumer, "COUNT", room)
	if block >= 0 {
		args = append(args, "BLOCK", block.Milliseconds())
	}
	args = append(args, "STREAMS", q.keys.stream, ">")
	r.entries = redis.NewRawWriteToCmd(s.base, &r.buffer.reply, args...)
	r.entries.SetFirstKeyPos(int8(len(args) - 2))
	if marks {
		r.marks = redis.NewZSliceCmd(s.base, "ZRANGEBYSCORE", q.keys.cancel, s.hold.newestMark(q), "+inf", "WITHSCORES")
	}
	return r
}

// rawReply takes in a reply as the client writes it, a line or a text at a time.
type rawReply struct{ bytes []byte }

func (r *rawReply) Write(p []byte) (int, error) {
	r.bytes = append(r.bytes, p...)
	return len(p), nil
}

// ReadFrom spares the client a buffer for each text that it copies.
func (r *rawReply) ReadFrom(from io.Reader) (int64, error) {
	limited, ok := from.(*io.LimitedReader)
	if !ok {
		return io.Copy(struct{ io.Writer }{r}, from)
	}
	begin := len(r.bytes)
	r.bytes = slices.Grow(r.bytes, int(limited.N))[:begin+int(limited.N)]
	n, err := io.ReadFull(limited.R, r.bytes[begin:])
	r.bytes = r.bytes[:begin+n]
	limited.N -= int64(n)
	return int64(n), err
}

var errReply = errors.New("smallage: the reply to a read cannot be understood")

// replySize is how long the reply to a read of so many entries will be, in bytes, if they are like the last ones.
func (q *queueState) replySize(entries int) int {
	return int(min(64+q.entrySize.Load()*int64(entries), largestExpected))
}

// readBuffer holds one reply and its entries.
type readBuffer struct {
	reply   rawReply
	entries []entry
	fields  [][]byte // of all entries
}

var readBuffers = sync.Pool{New: func() any { return new(readBuffer) }}

// getReadBuffer returns a buffer for a reply of about so many bytes.
func getReadBuffer(size int) *readBuffer {
	b := readBuffers.Get().(*readBuffer)
	b.reply.bytes = slices.Grow(b.reply.bytes[:0], size)
	return b
}

// put gives the buffer back; nothing that it holds may be used any more. One that has grown large is let go.
func (b *readBuffer) put() {
	if cap(b.reply.bytes) <= 2*largestExpected {
		readBuffers.Put(b)
	}
}

// largestExpected is the most that is set aside for a reply, in bytes.
const largestExpected = 64 << 10

// parse reads the reply to a streamRead. What it returns is good until the next call. refused says that it is an error of
// the server, which go-redis must see: it may have to follow a slot to another server. Errors: redis.Nil where there is no entry.
func (b *readBuffer) parse(reply []byte) (entries []entry, refused bool, err error) {
	p := replyParser{rest: reply}
	kind, n := p.head()
	switch {
	case kind == '-' || kind == '!':
		return nil, true, nil
	case kind == '_' || kind == '*' && n < 0:
		return nil, false, redis.Nil
	case kind == '*' && n == 1: // [[stream, entries]]
		if kind, n = p.head(); kind != '*' || n != 2 {
			return nil, false, errReply
		}
	case kind == '%' && n == 1: // {stream: entries}, of newer protocols
	default:
		return nil, false, errReply
	}
	p.text()
	kind, n = p.head()
	if kind != '*' || n < 0 || n > len(reply) {
		return nil, false, errReply
	}
	entries, all := b.entries[:0], b.fields[:0]
	for range n {
		if kind, n := p.head(); kind != '*' || n != 2 {
			return nil, false, errReply
		}
		e := entry{id: p.text()}
		kind, n := p.head()
		if kind != '*' && kind != '_' || n > len(reply) {
			return nil, false, errReply
		}
		first := len(all)
		for range n { // negative for an entry that was deleted
			all = append(all, p.text())
		}
		e.fields = all[first:len(all):len(all)]
		entries = append(entries, e)
	}
	if p.bad || len(p.rest) > 0 {
		return nil, false, errReply
	}
	b.entries, b.fields = entries, all
	return entries, false, nil
}

// replyParser walks through a reply of Redis's protocol.
type replyParser struct {
	rest []byte
	bad  bool
}

// head reads the first line of a value: its kind, and its number where it has one.
func (p *replyParser) head() (kind byte, n int) {
	if len(p.rest) < 3 {
		return p.fail()
	}
	kind = p.rest[0]
	end := 1
	switch kind {
	case '*', '$', '%', ':':
		negative := p.rest[1] == '-'
		if negative {
			end++
		}
		first := end
		for end < len(p.rest) && '0' <= p.rest[end] && p.rest[end] <= '9' && end < first+18 {
			n = 10*n + int(p.rest[end]-'0')
			end++
		}
		if end == first {
			return p.fail()
		}
		if negative {
			n = -n
		}
	default:
		if end = bytes.IndexByte(p.rest, '\r'); end < 1 {
			return p.fail()
		}
	}
	if end+1 >= len(p.rest) || p.rest[end] != '\r' {
		return p.fail()
	}
	p.rest = p.rest[end+2:]
	return kind, n
}

func (p *replyParser) fail() (kind byte, n int) {
	p.bad, p.rest = true, nil
	return 0, 0
}

func (p *replyParser) text() []byte {
	kind, n := p.head()
	if kind != '$' || n < 0 || n > len(p.rest)-2 {
		p.fail()
		return nil
	}
	text := p.rest[:n]
	p.rest = p.rest[n+2:]
	return text
}

// streamEntries are the entries of a reply that go-redis has parsed.
func streamEntries(streams []redis.XStream) (entries []entry) {
	for _, stream := range streams {
		for _, m := range stream.Messages {
			e := entry{id: []byte(m.ID)}
			for name, value := range m.Values {
				text, _ := value.(string)
				e.fields = append(e.fields, []byte(name), []byte(text))
			}
			entries = append(entries, e)
		}
	}
	return entries
}
