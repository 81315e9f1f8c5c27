package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPagesGetTheTablesTheyAskFor(t *testing.T) {
	t.Parallel()
	const report = "# Results\n\nMeasured today.\n\n- Machine: this\n\n### drain, plain\n\nNo-op jobs\n\n| a |\n|---|\n| 1 |\n\n### drain\n\n| 2 |\n"
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) { require.NoError(t, os.WriteFile(page, []byte(text), 0o644)) }
	read := func() string {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		return string(text)
	}
	write("# Page\n\n<!-- bench: Results -->\n<!-- /bench -->\n\nText.\n\n<!-- bench: drain, plain -->\nold\n\n| 0 |\n<!-- /bench -->\nMore.\n")
	const filled = "# Page\n\n<!-- bench: Results -->\nMeasured today.\n\n- Machine: this\n<!-- /bench -->\n\nText.\n\n" +
		"<!-- bench: drain, plain -->\nNo-op jobs\n\n| a |\n|---|\n| 1 |\n<!-- /bench -->\nMore.\n"
	for range 2 { // the second time, nothing changes
		require.NoError(t, copyTables(report, []string{page}))
		require.Equal(t, filled, read())
	}

	const unknown = "<!-- bench: drain -->\n<!-- /bench -->\n<!-- bench: enqueue -->\n<!-- /bench -->\n"
	write(unknown)
	require.ErrorContains(t, copyTables(report, []string{page}), "page.md: asks for what this run has no table of: enqueue; run all rows")
	require.Equal(t, unknown, read())
	require.NoError(t, copyTables(report, nil))
}
