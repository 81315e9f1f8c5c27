package main

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events string
		want   string
		ok     bool
	}{
		"passed, with subtests counted instead of their parent": {events: `
			{"Action":"run","Package":"p","Test":"TestA"}
			{"Action":"run","Package":"p","Test":"TestA/one"}
			{"Action":"run","Package":"p","Test":"TestA/two"}
			{"Action":"output","Package":"p","Test":"TestA/one","Output":"chatter\n"}
			{"Action":"pass","Package":"p","Test":"TestA/one"}
			{"Action":"pass","Package":"p","Test":"TestA/two"}
			{"Action":"pass","Package":"p","Test":"TestA"}
			{"Action":"run","Package":"p","Test":"TestB"}
			{"Action":"pass","Package":"p","Test":"TestB"}
			{"Action":"output","Package":"p","Output":"PASS\n"}
			{"Action":"pass","Package":"p","Elapsed":1.25}
			{"Action":"skip","Package":"q"}`, ok: true, want: `
ok	p	1.2s
?	q	[no test files]

3 passed, 0 failed, 0 skipped
`},
		"skipped tests are named with their reason": {events: `
			{"Action":"run","Package":"p","Test":"TestA"}
			{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
			{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:5: no server\n"}
			{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
			{"Action":"skip","Package":"p","Test":"TestA"}
			{"Action":"run","Package":"p","Test":"TestB"}
			{"Action":"pass","Package":"p","Test":"TestB"}
			{"Action":"pass","Package":"p"}`, ok: true, want: `
ok	p	0.0s
SKIPPED p TestA: a_test.go:5: no server

1 passed, 0 failed, 1 skipped
`},
		"a run of skipped tests only is none": {events: `
			{"Action":"run","Package":"p","Test":"TestA"}
			{"Action":"skip","Package":"p","Test":"TestA"}
			{"Action":"pass","Package":"p"}`, want: `
ok	p	0.0s
SKIPPED p TestA: 

0 passed, 0 failed, 1 skipped
`},
		"failed": {events: `
			{"Action":"run","Package":"p","Test":"TestA"}
			{"Action":"run","Package":"p","Test":"TestA/one"}
			{"Action":"output","Package":"p","Test":"TestA/one","Output":"    a_test.go:5: wrong\n"}
			{"Action":"fail","Package":"p","Test":"TestA/one"}
			{"Action":"fail","Package":"p","Test":"TestA"}
			{"Action":"output","Package":"p","Output":"FAIL\n"}
			{"Action":"fail","Package":"p","Elapsed":2}`, want: `
    a_test.go:5: wrong
FAIL
FAIL	p	2.0s

0 passed, 1 failed, 0 skipped
`},
		"a panic in a test that never ended": {events: `
			{"Action":"run","Package":"p","Test":"TestB"}
			{"Action":"pass","Package":"p","Test":"TestB"}
			{"Action":"run","Package":"p","Test":"TestA"}
			{"Action":"output","Package":"p","Test":"TestA","Output":"panic: oh\n"}
			{"Action":"fail","Package":"p"}`, want: `
panic: oh
FAIL	p	0.0s

1 passed, 0 failed, 0 skipped
`},
		"a package that does not build": {events: `
			{"Action":"build-output","ImportPath":"p [p.test]","Output":"p/a.go:1:1: wrong\n"}
			{"Action":"build-fail","ImportPath":"p [p.test]"}
			{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
			{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`, want: `
p/a.go:1:1: wrong
FAIL	p [build failed]
FAIL	p	0.0s

0 passed, 0 failed, 0 skipped
`},
		"nothing": {want: "\n\n0 passed, 0 failed, 0 skipped\n"},
		"what is no event": {events: "go: cannot find module\n", want: `
go: cannot find module

0 passed, 0 failed, 0 skipped
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			events := strings.ReplaceAll(strings.TrimPrefix(c.events, "\n"), "\t\t\t", "")
			ok, err := summarize(strings.NewReader(events), &out)
			require.NoError(t, err)
			require.Equal(t, c.want, "\n"+out.String())
			require.Equal(t, c.ok, ok)
		})
	}
}

func TestReadErrorIsNoSuccess(t *testing.T) {
	t.Parallel()
	ok, err := summarize(iotest.ErrReader(errors.New("broken pipe")), &strings.Builder{})
	require.False(t, ok)
	require.ErrorContains(t, err, "broken pipe")
}
