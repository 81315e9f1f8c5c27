package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestTextFiles(t *testing.T) {
	t.Parallel()
	text := &fstest.MapFile{Data: []byte("text")}
	root := fstest.MapFS{
		"README.md":         text,
		"a.go":              text,
		"docs/notes.txt":    text,
		"empty.md":          {},
		".git/config":       text,
		".hidden.md":        text,
		"docs/.draft/a.md":  text,
		"program":           {Data: []byte("\x7fELF\x00\x01")},
		"latin1.txt":        {Data: []byte("caf\xe9 cr\xe8me")},
		"huge.md":           {Data: make([]byte, largestFile+1)},
		"long.txt":          {Data: []byte(strings.Repeat("text ", 5000))},
		"cut.txt":           {Data: []byte(strings.Repeat("x", 4095) + "é and on")},
		"cut-long.txt":      {Data: []byte(strings.Repeat("x", 4093) + "🌿 and on")},
		"broken-at-cut.txt": {Data: []byte(strings.Repeat("x", 4090) + "\xff\xfe\xfd\xfc and on")},
	}
	paths, leftOut, err := textFiles(root, false)
	require.NoError(t, err)
	require.Equal(t, []string{"README.md", "a.go", "cut-long.txt", "cut.txt", "docs/notes.txt", "empty.md", "long.txt"}, paths)
	require.Equal(t, 4, leftOut)

	paths, leftOut, err = textFiles(root, true)
	require.NoError(t, err)
	require.Equal(t, []string{"README.md", "a.go", "empty.md"}, paths)
	require.Equal(t, 1, leftOut)
}

func TestTextFilesOfAFolderThatIsGone(t *testing.T) {
	t.Parallel()
	_, _, err := textFiles(os.DirFS(filepath.Join(t.TempDir(), "gone")), false)
	require.ErrorIs(t, err, os.ErrNotExist)
}
