package gen

import (
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// FuzzDirective: the parser of words never panics, never accepts nonsense, and reads back what it is given.
func FuzzDirective(f *testing.F) {
	for _, seed := range []string{
		"", " ", " queue=search attempts=5", " dedup=\"a b\"", " dedup=`a\\b`", "\tqueue=a\r", " queue", " =x", " queue=", " queue=\"",
		" queue=\"a\"b", " queue=a\"b\"", " queue = a", " queue =a", " \"queue\"=a", " q\u00fceue=\u00e4", " queue=\"\\x00\"", " queue=\"\\xff\"",
		" queue='a'", " a=b=c", " dedup=\"charge:{invoiceID}\"", " //smallage:task", strings.Repeat(" a=b", 100),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, mistakes := parseWords(text)
		for _, w := range words {
			require.NotEmpty(t, w.key)
			require.NotEmpty(t, w.value)
			require.NotContains(t, w.key, "=")
			require.False(t, strings.ContainsAny(w.key, " \t\r"), "a key with a blank: %q", w.key)
			require.False(t, strings.ContainsFunc(w.value, unicode.IsControl), "a value with a control character: %q", w.value)
			require.Equal(t, w.key+"=", text[w.offset:w.values], "the offsets do not lead back to the word")
			rest := text[w.values:]
			if rest[0] == '"' || rest[0] == '`' {
				quoted, err := strconv.QuotedPrefix(rest)
				require.NoError(t, err)
				plain, err := strconv.Unquote(quoted)
				require.NoError(t, err)
				require.Equal(t, plain, w.value)
			} else {
				require.True(t, strings.HasPrefix(rest, w.value))
				require.False(t, strings.ContainsAny(w.value, " \t\r\"`"), "a bare value with a blank or a quote: %q", w.value)
			}
			// A word that is written anew reads the same.
			again, wrong := parseWords(" " + w.key + "=" + strconv.Quote(w.value))
			require.Empty(t, wrong)
			require.Len(t, again, 1)
			require.Equal(t, w.key, again[0].key)
			require.Equal(t, w.value, again[0].value)
			if k, known := keys[w.key]; known {
				var s settings
				require.NotContains(t, k.set(&s, w.value), "%!")
			}
		}
		for _, m := range mistakes {
			require.Less(t, m.offset, len(text))
			require.NotEmpty(t, m.text)
		}
		if strings.TrimLeft(text, " \t\r") != "" {
			require.NotZero(t, len(words)+len(mistakes), "text was passed over in silence")
		}
	})
}

// FuzzTemplate: the parser of dedup templates never panics, and what it accepts means what it says.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{
		"", "charge:{invoiceID}", "{a}", "{a}{b}", "{a}:{b}", "{a}%{b}", "{a}x{b}", "{{}}", "{{{a}}}", "}", "{", "{}", "{a", "{a.B.C}", "{a..B}",
		"{ a }", "{a{b}}", "\u00e9{a}\u00e8{b}", "{\u9001\u4fe1}", "{func}", "{a}{{{b}", "{a}}}{b}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts, problem := parseTemplate(text)
		if problem != "" {
			require.Nil(t, parts)
			require.Contains(t, problem, ";", "it does not say what to write instead")
			return
		}
		var again strings.Builder
		for _, p := range parts {
			if p.path == nil {
				require.NotEmpty(t, p.literal)
				again.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.literal))
				continue
			}
			for _, name := range p.path {
				require.Regexp(t, `^[\pL_][\pL\p{Nd}_]*$`, name)
			}
			again.WriteString("{" + strings.Join(p.path, ".") + "}")
		}
		require.Equal(t, text, again.String())

		// Where the separators are found enough, two lists of values never give one key.
		chars, left, _ := separators(parts)
		if left != nil {
			return
		}
		seen := map[string]string{}
		tricky := []string{"", "a", chars, "%", "%3A", chars + "a", "a" + chars, ":"}
		for _, first := range tricky {
			for _, second := range tricky {
				values, key := "", ""
				n := 0
				for _, p := range parts {
					if p.path == nil {
						key += p.literal
						continue
					}
					value := first
					if n%2 == 1 {
						value = second
					}
					n++
					key += escaped(value, chars)
					values += strconv.Quote(value)
				}
				if other, known := seen[key]; known {
					require.Equal(t, other, values, "two lists of values give the key %q", key)
				}
				seen[key] = values
			}
		}
	})
}

// escaped is what the runtime does to a value: separators and '%' are percent-encoded, where there are separators.
func escaped(value, chars string) string {
	if chars == "" {
		return value
	}
	var b strings.Builder
	for i := range len(value) {
		if value[i] == '%' || strings.IndexByte(chars, value[i]) >= 0 {
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[value[i]>>4], digits[value[i]&15]})
			continue
		}
		b.WriteByte(value[i])
	}
	return b.String()
}
