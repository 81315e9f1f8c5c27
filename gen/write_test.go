package gen

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/smallage/smallage/templates"
)

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}

func TestWriteChangesNothingWhereOneFileCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := filepath.Join(dir, "a", templates.FileName)
	require.NoError(t, os.MkdirAll(filepath.Dir(first), 0o777))
	require.NoError(t, os.WriteFile(first, []byte("old"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "z"), nil, 0o644))
	out := &Output{Files: map[string][]byte{
		first: []byte("new"),
		filepath.Join(dir, "m", "n", templates.FileName): []byte("new"),
		filepath.Join(dir, "z", templates.FileName):      []byte("new"), // z is a file
	}}
	_, err := out.Write()
	require.Error(t, err)
	require.ErrorContains(t, err, filepath.Join(dir, "z"))
	data, err := os.ReadFile(first)
	require.NoError(t, err)
	require.Equal(t, "old", string(data))
	require.Equal(t, []string{templates.FileName}, entries(t, filepath.Join(dir, "a")))
	require.Equal(t, []string{"a", "z"}, entries(t, dir), "a folder was left behind")
}

func TestWriteTouchesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	same, other, gone := filepath.Join(dir, "same.go"), filepath.Join(dir, "other.go"), filepath.Join(dir, "gone", "gone.go")
	require.NoError(t, os.Mkdir(filepath.Dir(gone), 0o777))
	for _, path := range []string{same, other, gone} {
		require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	}
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(same, long, long))
	out := &Output{Files: map[string][]byte{same: []byte("old"), other: []byte("new")}, Remove: []string{gone}}
	done, err := out.Write()
	require.NoError(t, err)
	require.Equal(t, Changes{Write: []string{other}, Remove: []string{gone}}, done)
	info, err := os.Stat(same)
	require.NoError(t, err)
	require.Equal(t, long, info.ModTime())
	info, err = os.Stat(other)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "the mode of the file before")
	require.Equal(t, []string{"other.go", "same.go"}, entries(t, dir))
}

func TestWriteSweepsWhatAKilledRunLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	same, gone := filepath.Join(dir, "same", templates.FileName), filepath.Join(dir, "gone", templates.FileName)
	for _, path := range []string{same, gone} {
		require.NoError(t, os.Mkdir(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), temporaryPrefix+"1"), []byte("half"), 0o600))
	}
	out := &Output{Files: map[string][]byte{same: []byte("old")}, Remove: []string{gone}}
	done, err := out.Write()
	require.NoError(t, err)
	require.Equal(t, Changes{Remove: []string{gone}}, done)
	require.Equal(t, []string{templates.FileName}, entries(t, filepath.Dir(same)))
	require.NoDirExists(t, filepath.Dir(gone))
}

// TestWritesAtTheSameTimeAllSucceed has runs sweep away what the others have in hand.
func TestWritesAtTheSameTimeAllSucceed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var group errgroup.Group
	for writer := range 6 {
		group.Go(func() error {
			for round := range 20 {
				files := map[string][]byte{}
				for i := range 5 {
					files[filepath.Join(dir, strconv.Itoa(i), templates.FileName)] = fmt.Appendf(nil, "%d of %d", round, writer)
				}
				if _, err := (&Output{Files: files}).Write(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for i := range 5 {
		folder := filepath.Join(dir, strconv.Itoa(i))
		data, err := os.ReadFile(filepath.Join(folder, templates.FileName))
		require.NoError(t, err)
		require.Regexp(t, `^19 of \d$`, string(data))
		require.Equal(t, []string{templates.FileName}, entries(t, folder))
	}
}

func TestWriteRefusesAnOutputWithDiagnostics(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), templates.FileName)
	out := &Output{Files: map[string][]byte{path: []byte("new")}, Diagnostics: []Diagnostic{{Kind: noError}}}
	_, err := out.Write()
	require.Error(t, err)
	require.NoFileExists(t, path)
}
