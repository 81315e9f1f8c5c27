package smallage

import (
	"strings"
	"sync"
)

const defaultNamespace = "smallage"

// keyspace makes every Redis key of one namespace. Each key carries exactly one hash tag, so that what belongs together
// shares a slot on a cluster: a queue, a result, a dedup key.
type keyspace struct {
	ns     string
	queues sync.Map // queue name → *queueKeys
}

// queueKeys are the keys of one queue, in one slot.
type queueKeys struct {
	stream, delayed, delayedJobs, dead, deadJobs, deadIDs, verdict, cancel, paused, workers, pass, sweep string
	id                                                                                                   string // prefix; the job id follows
	streamArg                                                                                            any    // stream, as an argument
}

func newKeyspace(ns string) *keyspace { return &keyspace{ns: ns} }

func (k *keyspace) queue(name string) *queueKeys {
	if known, ok := k.queues.Load(name); ok {
		return known.(*queueKeys)
	}
	base := k.ns + ":{q:" + name + "}:"
	keys, _ := k.queues.LoadOrStore(name, &queueKeys{
		stream: base + "stream", delayed: base + "delayed", delayedJobs: base + "delayed:jobs",
		dead: base + "dead", deadJobs: base + "dead:jobs", deadIDs: base + "dead:ids",
		verdict: base + "verdict", cancel: base + "cancel", paused: base + "paused",
		workers: base + "workers", pass: base + "pass", sweep: base + "pass:sweep", id: base + "id:",
		streamArg: base + "stream",
	})
	return keys.(*queueKeys)
}

// registry is the set of all queues that were ever used.
func (k *keyspace) registry() string { return k.ns + ":{queues}" }

// outcome names the keys of a job's outcome, and the channel on which it is announced. On a cluster all have one slot.
func (k *keyspace) outcome(id JobID) (result, token, notice string) {
	ns, text := k.ns, id.String()
	names := ns + ":{r:" + text + "}:result" + ns + ":{r:" + text + "}:token" + ns + ":{r:" + text + "}:notice" // one allocation
	base := len(ns) + len(":{r:}:") + len(text)
	second := base + len("result")
	third := second + base + len("token")
	return names[:second], names[second:third], names[third:]
}

// dedup escapes the key so that no two keys meet and none ends the hash tag early.
func (k *keyspace) dedup(key string) string {
	plain := true
	for i := range len(key) {
		plain = plain && plainInKey[key[i]]
	}
	if plain {
		return k.ns + ":{d:" + key + "}"
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(k.ns) + len(key) + 8)
	b.WriteString(k.ns)
	b.WriteString(":{d:")
	for i := range len(key) {
		if c := key[i]; plainInKey[c] {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	b.WriteByte('}')
	return b.String()
}

// plainInKey holds for bytes that stand for themselves in the key of a dedup key.
var plainInKey = func() (plain [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/@" {
		plain[c] = true
	}
	return plain
}()
