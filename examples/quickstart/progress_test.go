package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressDrawsTheBeginningAndTheEnd(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &progress{out: &out, label: "reindex", total: 4}
	p.clear() // there is nothing to remove yet
	p.show(1)
	p.drawn = time.Now().Add(time.Hour) // so that however slow the machine is, the next ones come too soon to be seen
	p.show(2)
	p.show(3)
	p.show(4)
	p.clear()
	require.Equal(t, "\rreindex [=======                       ] 1/4"+
		"\rreindex [==============================] 4/4\r\x1b[K", out.String())
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
