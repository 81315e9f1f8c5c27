package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgressDrawsUpToTheEnd(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &progress{out: &out, label: "reindex", total: 4}
	for done := range 5 {
		p.show(done)
	}
	p.clear()
	lines := strings.Split(out.String(), "\r")
	require.Equal(t, "reindex [                              ] 0/4", lines[1])
	require.Equal(t, "reindex [==============================] 4/4", lines[len(lines)-2])
	require.Equal(t, "\x1b[K", lines[len(lines)-1])
	require.Len(t, lines, 4, "what an eye cannot follow is not drawn")
}

func TestProgressDrawsNothingWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	p := newProgress(file, "reindex", 2)
	p.show(1)
	p.show(2)
	p.clear()
	info, err := file.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
}
