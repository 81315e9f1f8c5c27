package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A page shows a part of the report between two marks, of which the first names the part's heading:
//
//	<!-- bench: drain, plain -->
//	<!-- /bench -->
var marked = regexp.MustCompile(`(?s)(<!-- bench: ([^\n]*?) -->\n).*?(<!-- /bench -->)`)

// copyTables writes the report's parts into the pages that ask for them, so that no page has a figure of another run.
func copyTables(report string, pages []string) error {
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		filled, err := fillPage(string(text), report)
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		if filled != string(text) {
			if err := os.WriteFile(page, []byte(filled), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillPage puts the report's parts between a page's marks.
func fillPage(page, report string) (string, error) {
	var missing []string
	page = marked.ReplaceAllStringFunc(page, func(block string) string {
		parts := marked.FindStringSubmatch(block)
		text, found := section(report, parts[2])
		if !found {
			missing = append(missing, parts[2])
			return block
		}
		return parts[1] + text + "\n" + parts[3]
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("asks for what this run has no table of: %s; run all rows, in the long form", strings.Join(missing, "; "))
	}
	return page, nil
}

// section is what a report says under a heading.
func section(report, heading string) (string, bool) {
	for part := range strings.SplitSeq("\n"+report, "\n#") {
		title, text, _ := strings.Cut(strings.TrimLeft(part, "#"), "\n")
		if strings.TrimSpace(title) == heading {
			return strings.TrimSpace(text), true
		}
	}
	return "", false
}
