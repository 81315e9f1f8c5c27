// Command bench measures Smallage beside what Redis itself can do and what people use today, on servers of its own, and
// prints one table. Only ratios within one run count: the rounds of all contenders are interleaved, each measurement is
// a process of its own, and the order changes from round to round.
//
//	bench [-short] [-rows regexp] [-who regexp] [-rounds n] [-limit duration] [-profile folder] [-out file] [-docs files]
//	bench copy results.md page...       (where only the pages' marks have changed)
//	bench flame picture.svg profile...
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "child":
		err = child(os.Args[2])
	case len(os.Args) > 3 && os.Args[1] == "flame":
		err = flame(os.Args[3:], os.Args[2])
	case len(os.Args) > 3 && os.Args[1] == "copy":
		var report []byte
		if report, err = os.ReadFile(os.Args[2]); err == nil {
			err = copyTables(string(report), os.Args[3:])
		}
	default:
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	brief := flag.Bool("short", false, "under five minutes, with less to rely on")
	rows := flag.String("rows", ".", "only the rows that match this regular expression")
	who := flag.String("who", ".", "only the contenders that match this regular expression")
	rounds := flag.Int("rounds", 0, "how often everything is measured; 0: by the form of the run")
	limit := flag.Duration("limit", 0, "begin no further round that would end later than this; 0: by the form of the run")
	out := flag.String("out", "", "write the table to this file too")
	docs := flag.String("docs", "", "copy tables into these pages, comma-separated, between their marks")
	profile := flag.String("profile", "", "write CPU profiles of the measured processes into this folder")
	flag.Parse()
	rowMatch, err := regexp.Compile(*rows)
	if err != nil {
		return err
	}
	whoMatch, err := regexp.Compile(*who)
	if err != nil {
		return err
	}
	size := long
	if *brief {
		size = short
	}
	if *rounds > 0 {
		size.rounds = *rounds
	}
	if *limit > 0 {
		size.limit = *limit
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &benchmark{size: size, profile: *profile, began: time.Now(), redis: map[string]string{}, found: map[cell][]metrics{}}
	defer b.stop()
	for _, r := range plan(size) {
		if rowMatch.MatchString(r.name) {
			r.who = matching(whoMatch, r.who)
			b.rows = append(b.rows, r)
		}
	}
	if err := b.start(ctx); err != nil {
		return err
	}
	for b.rounds < size.rounds && b.timeLeft() {
		b.again = 0
		for _, r := range b.rows {
			if err := b.round(ctx, r, b.rounds); err != nil {
				return err
			}
		}
		b.rounds++
	}
	report := b.report(ctx)
	fmt.Print(report)
	if *out != "" {
		if err := os.WriteFile(*out, []byte(report), 0o644); err != nil {
			return err
		}
	}
	return copyTables(report, strings.FieldsFunc(*docs, func(r rune) bool { return r == ',' }))
}

// timeLeft tells whether another round, as long as the last one, ends within the limit. The first always takes place.
func (b *benchmark) timeLeft() bool {
	return b.rounds == 0 || time.Since(b.began)+b.again < b.size.limit
}

func matching(match *regexp.Regexp, names []string) (kept []string) {
	for _, name := range names {
		if match.MatchString(name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// round measures one row once for each contender; where it is measured in pieces, their figures become one.
func (b *benchmark) round(ctx context.Context, r row, round int) error {
	before := map[string]int{}
	for _, name := range r.who {
		before[name] = len(b.found[cell{r.name, name}])
	}
	for piece := range max(1, r.pieces) {
		if err := b.piece(ctx, r, round, piece); err != nil {
			return err
		}
	}
	for _, name := range r.who {
		c, n := cell{r.name, name}, before[name]
		if found := b.found[c]; len(found) > n+1 {
			b.found[c] = append(found[:n], merge(found[n:]))
		}
	}
	return nil
}

// piece measures one piece of a row for each contender, in an order that moves on with each round and each piece.
func (b *benchmark) piece(ctx context.Context, r row, round, piece int) error {
	for i := range r.who {
		name := r.who[(i+round+piece)%len(r.who)]
		if name == "river" && b.postgres == "" || round > 0 && slices.Contains(r.once, name) {
			continue
		}
		began := time.Now()
		if err := b.one(ctx, r, name, round); err != nil {
			return err
		}
		if !slices.Contains(r.once, name) {
			b.again += time.Since(began)
		}
	}
	return nil
}

// merge makes the figures of all jobs of those of the pieces: jobs, their rate, and what is counted per job.
func merge(pieces []metrics) metrics {
	all := metrics{}
	jobs, seconds := 0.0, 0.0
	for _, m := range pieces {
		jobs += m["jobs"]
		seconds += m["jobs"] / m["rate"]
		for name, v := range m {
			all[name] += v * m["jobs"]
		}
	}
	for name := range all {
		all[name] /= jobs
	}
	all["jobs"], all["rate"] = jobs, jobs/seconds
	return all
}

// one measures one row for one contender.
func (b *benchmark) one(ctx context.Context, r row, name string, round int) error {
	if r.generate != "" {
		m, err := b.made.measure(ctx, name, r.generate)
		if err != nil {
			return err
		}
		b.keepFigures(r, name, round, m)
		return nil
	}
	o := r.order
	o.Contender, o.Redis, o.Postgres = name, []string{b.redis[r.fsync]}, b.postgres
	if o.Features.Cluster {
		o.Redis = b.cluster
	}
	if fewer, ok := r.jobs[name]; ok {
		o.Jobs = fewer
	}
	o.Jobs /= max(1, r.pieces)
	for _, addr := range o.Redis {
		if err := flush(ctx, addr); err != nil {
			return err
		}
	}
	before := []string{"reset"}
	if r.fill {
		before = append(before, "fill")
	}
	waiting := 0.0
	for _, scenario := range before {
		prior := o
		prior.Scenario = scenario
		m, err := measure(ctx, prior)
		if err != nil {
			return err
		}
		waiting = m["bytes"]
	}
	if b.profile != "" {
		o.Profile = fmt.Sprintf("%s/%s-%s-%d.pprof", b.profile, regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(r.name, "-"), name, round)
	}
	m, err := measure(ctx, o)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil { // the others go on; the report says that this one has no figure
		b.failed = append(b.failed, fmt.Sprintf("%s, %s, round %d: %v", r.name, name, round+1, err))
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if r.fill && len(m) > 0 && o.Backlog > 0 {
		m["bytes"] = waiting
	}
	b.keepFigures(r, name, round, m)
	return nil
}

func (b *benchmark) keepFigures(r row, name string, round int, m metrics) {
	if len(m) > 0 {
		c := cell{r.name, name}
		b.found[c] = append(b.found[c], m)
	}
	fmt.Fprintf(os.Stderr, "%6.0fs  round %d  %-40s %-11s %v\n", time.Since(b.began).Seconds(), round+1, r.name, name, m)
}

func flush(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return err
	}
	return rdb.ConfigResetStat(ctx).Err()
}

// measure carries out an order in a process of its own.
func measure(ctx context.Context, o order) (metrics, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "child", string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", o.Scenario, o.Contender, err)
	}
	var m metrics
	if len(out) > 0 {
		err = json.Unmarshal(out, &m)
	}
	return m, err
}
