package gen

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is one key=value of a directive. Offsets are in bytes from the beginning of the directive's text.
type word struct {
	key    string
	value  string
	offset int // of the key
	values int // of the value
}

// wordError says what is wrong with the text at an offset.
type wordError struct {
	offset int
	text   string
}

// parseWords splits the text after a directive's name into its words: key=value, the value as it stands or, with spaces
// in it, as a Go string literal. It goes on after a mistake, so that all are found at once.
func parseWords(text string) (words []word, mistakes []wordError) {
	i := 0
	for {
		for i < len(text) && isBlank(text[i]) {
			i++
		}
		if i == len(text) {
			return words, mistakes
		}
		w, end, mistake := parseWord(text, i)
		if mistake != "" {
			mistakes = append(mistakes, wordError{i, mistake})
		} else {
			words = append(words, w)
		}
		i = end
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// parseWord reads the word that begins at start and returns the offset after it.
func parseWord(text string, start int) (w word, end int, mistake string) {
	i := start
	for i < len(text) && !isBlank(text[i]) && text[i] != '=' {
		i++
	}
	key := text[start:i]
	if isRemark(" " + text[start:]) {
		return w, len(text), "a directive takes no remark; put it on a line of its own, above"
	}
	if i == len(text) || text[i] != '=' {
		rest := strings.TrimLeft(text[i:], " \t\r")
		if strings.HasPrefix(rest, "=") {
			return w, len(text) - len(rest) + 1, fmt.Sprintf("there is a space between %s and its value; write %s=value in one word", show(key), show(key))
		}
		return w, i, fmt.Sprintf("%s is not of the form key=value; write %s", show(key), example(key))
	}
	w = word{key: key, offset: start, values: i + 1}
	i++
	if i < len(text) && (text[i] == '"' || text[i] == '`') {
		quoted, err := strconv.QuotedPrefix(text[i:])
		if err != nil {
			return w, len(text), fmt.Sprintf("the value of %s is not a complete Go string literal; close the quote, and write a quote inside as \\\"", show(key))
		}
		w.value, err = strconv.Unquote(quoted)
		end = i + len(quoted)
		if err != nil {
			return w, end, fmt.Sprintf("the value of %s is not a Go string literal; see strconv.Unquote", show(key))
		}
		if end < len(text) && !isBlank(text[end]) {
			for end < len(text) && !isBlank(text[end]) {
				end++
			}
			return w, end, fmt.Sprintf("text follows the closing quote of %s; put a space between two words", show(key))
		}
	} else {
		end = i
		for end < len(text) && !isBlank(text[end]) {
			end++
		}
		w.value = text[i:end]
		if at := strings.IndexAny(w.value, "\"`"); at >= 0 {
			return w, end, fmt.Sprintf("the value of %s has a quote in its middle; quote the whole value", show(key))
		}
	}
	switch {
	case key == "":
		return w, end, "a value has no key before its =; write key=value"
	case w.value == "":
		return w, end, fmt.Sprintf("%s has no value; write %s, or leave the key out for its default", show(key), example(key))
	case !utf8.ValidString(w.value):
		return w, end, fmt.Sprintf("the value of %s is not valid UTF-8; write text", show(key))
	case strings.ContainsFunc(w.value, unicode.IsControl):
		return w, end, fmt.Sprintf("the value of %s holds a control character; write plain text", show(key))
	}
	return w, end, ""
}

// show is a piece of the user's text as a message quotes it.
func show(s string) string {
	s = shortened(s)
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' {
			continue
		}
		return strconv.Quote(s)
	}
	if s == "" {
		return `""`
	}
	return s
}

// showASCII is show for words that must be ASCII: what looks right and is not can be seen.
func showASCII(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return strconv.QuoteToASCII(shortened(s))
	}
	return show(s)
}

func shortened(s string) string {
	const limit = 60
	if utf8.RuneCountInString(s) > limit {
		return string([]rune(s)[:limit]) + "…"
	}
	return s
}

// example is the key with a value that would do.
func example(name string) string {
	if k, ok := keys[name]; ok {
		return k.example
	}
	return "key=value"
}
