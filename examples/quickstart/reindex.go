package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/smallage/smallage/examples/quickstart/tasks"
	smallage "github.com/smallage/smallage/runtime"
)

// reindex enqueues one job per file and waits for all of them.
func (s *show) reindex(ctx context.Context, paths []string) error {
	begin, done := time.Now(), newRow("Reindex")
	sent := newProgress(s.out, "enqueue", len(paths))
	defer sent.clear()
	ids := make([]smallage.JobID, len(paths))
	for i, path := range paths {
		id, err := tasks.ReindexEnqueue(ctx, s.client, path, tasks.ReindexWith.ResultTTL(5*time.Minute))
		if err != nil {
			return err
		}
		ids[i] = id
		sent.show(i + 1)
	}
	sent.clear()

	words, bar := 0, newProgress(s.out, "reindex", len(paths))
	defer bar.clear()
	for i, id := range ids {
		value, err := tasks.ReindexWait(ctx, s.client, id, patience)
		var ending *smallage.JobError
		switch {
		case errors.As(err, &ending): // the rest goes on; the promise below is broken
			done.endings[ending.Status]++
			bar.clear()
			fmt.Fprintln(s.out, ending.Error())
		case err != nil:
			return fmt.Errorf("wait for %s: %w", paths[i], err)
		default:
			n, err := strconv.Atoi(string(value))
			if err != nil {
				return fmt.Errorf("value of %s: %w", paths[i], err)
			}
			words += n
			done.endings[smallage.StatusOK]++
		}
		bar.show(i + 1)
	}
	done.took = time.Since(begin)
	s.rows = append(s.rows, done)

	files, indexed := s.index.Size()
	s.check(done.endings[smallage.StatusOK] == len(paths) && files == len(paths),
		"every file was indexed: %d of %d", files, len(paths))
	s.check(words == indexed, "the jobs' values add up to the index: %d words of %d", words, indexed)
	return nil
}

// search answers a few queries from what the workers built, and counts the best answer's words anew in its file.
func (s *show) search(own bool) error {
	queries := []string{"dedup key", "worker", "redis"}
	if !own {
		if queries = s.index.Frequent(3, 5); len(queries) == 0 {
			queries = s.index.Frequent(3, 1)
		}
	}
	right := 0
	fmt.Fprintln(s.out)
	for _, query := range queries {
		hits := s.index.Search(query)
		fmt.Fprintf(s.out, "search %q: %d files\n", query, len(hits))
		for _, hit := range hits[:min(3, len(hits))] {
			fmt.Fprintf(s.out, "  %4d  %s\n", hit.Count, hit.Path)
		}
		if len(hits) == 0 {
			continue
		}
		text, err := fs.ReadFile(s.root, hits[0].Path)
		if err != nil {
			return fmt.Errorf("look at what a search found: %w", err)
		}
		count, searched := 0, tasks.Words(query)
		for _, word := range tasks.Words(string(text)) {
			if slices.Contains(searched, word) {
				count++
			}
		}
		if count == hits[0].Count {
			right++
		}
	}
	s.check(right == len(queries), "the best answers' words were counted right: %d of %d", right, len(queries))
	return nil
}
