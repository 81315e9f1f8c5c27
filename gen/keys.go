package gen

import (
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/smallage/smallage/templates"
)

// settings is a directive's meaning, as far as it can be known without the function.
type settings struct {
	templates.Settings
	name   string
	as     string
	inject []string
}

// key is one key of //smallage:task.
type key struct {
	example string
	set     func(s *settings, value string) (problem string)
}

// keys are the keys of //smallage:task. A problem ends with what to write instead. It is filled by init, because the
// messages of the parser show its examples.
var keys map[string]key

func init() {
	keys = map[string]key{
		"name": {"name=billing.Charge", func(s *settings, v string) string {
			s.name = v
			return wireName(v)
		}},
		"aliases": {"aliases=billing.Bill", func(s *settings, v string) (problem string) {
			s.Aliases, problem = list(v, wireName)
			return problem
		}},
		"as": {"as=Charge", func(s *settings, v string) string {
			s.as = v
			if !token.IsIdentifier(v) || strings.Trim(v, "_") == "" {
				return "is not a Go identifier; write a word of letters and digits, such as as=Charge"
			}
			return ""
		}},
		"queue": {"queue=billing", func(s *settings, v string) string {
			s.Queue = v
			return queueName(v)
		}},
		"dedup": {`dedup="charge:{invoiceID}"`, func(s *settings, v string) string {
			s.Dedup = v
			return "" // template.go reads it, with the function's parameters
		}},
		"result-ttl": {"result-ttl=1h", func(s *settings, v string) (problem string) {
			s.ResultTTL, problem = span(v, time.Millisecond)
			return problem
		}},
		"expires-in": {"expires-in=10m", func(s *settings, v string) (problem string) {
			s.ExpiresIn, problem = span(v, time.Millisecond)
			return problem
		}},
		"attempts": {"attempts=5", func(s *settings, v string) string {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > maxAttempts || v != strconv.Itoa(n) {
				return fmt.Sprintf("is not a number of runs; write a whole number from 1 to %d", maxAttempts)
			}
			s.Attempts = n
			return ""
		}},
		"backoff": {"backoff=1s,5m", func(s *settings, v string) (problem string) {
			first, longest, two := strings.Cut(v, ",")
			if s.Backoff, problem = span(first, time.Millisecond); problem != "" || !two {
				return problem
			}
			if s.BackoffMax, problem = span(longest, time.Millisecond); problem != "" {
				return problem
			}
			if s.BackoffMax < s.Backoff {
				return "has a largest delay below the first; write the first delay, a comma, the largest: 1s,5m"
			}
			return ""
		}},
		"timeout": {"timeout=30s", func(s *settings, v string) (problem string) {
			s.Timeout, problem = span(v, time.Millisecond)
			return problem
		}},
		"dedup-ttl": {"dedup-ttl=24h", func(s *settings, v string) (problem string) {
			s.DedupTTL, problem = span(v, time.Millisecond)
			return problem
		}},
		"optional": {"optional=currency", func(s *settings, v string) (problem string) {
			s.Optional, problem = list(v, identifier)
			return problem
		}},
		"inject": {"inject=gateway", func(s *settings, v string) (problem string) {
			s.inject, problem = list(v, identifier)
			return problem
		}},
	}
}

// maxAttempts is more than anyone waits for, and far from overflowing anything.
const maxAttempts = 1_000_000

// Keys returns the keys of //smallage:task, sorted.
func Keys() []string { return slices.Sorted(maps.Keys(keys)) }

// wireName refuses names that would be hard to read in a log or that are separated wrongly in a list.
func wireName(v string) string {
	if len(v) > 200 || strings.ContainsFunc(v, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-/:", r)
	}) {
		return "is not a task name; write up to 200 letters, digits and the characters . _ - / :"
	}
	return ""
}

func queueName(v string) string {
	for _, r := range v {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r) {
			return "is not a queue name; write ASCII letters, digits and the characters . _ -"
		}
	}
	if len(v) > 200 {
		return "is longer than 200 characters; write a shorter queue name"
	}
	return ""
}

func identifier(v string) string {
	if !token.IsIdentifier(v) {
		return "is not a list of parameters; write their names, separated by commas without spaces"
	}
	return ""
}

func span(v string, least time.Duration) (time.Duration, string) {
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, "is not a duration; write a number with a unit, such as 500ms, 30s, 5m or 24h"
	}
	if d < least {
		return 0, fmt.Sprintf("is below %v; write a longer duration, or leave the key out for its default", least)
	}
	return d, ""
}

// list splits a value at its commas.
func list(v string, check func(string) string) ([]string, string) {
	items := strings.Split(v, ",")
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
		if items[i] == "" {
			return nil, "has an empty item; write names separated by single commas"
		}
		if problem := check(items[i]); problem != "" {
			return nil, problem
		}
		if slices.Contains(items[:i], items[i]) {
			return nil, fmt.Sprintf("names %s twice; name it once", items[i])
		}
	}
	return items, ""
}
