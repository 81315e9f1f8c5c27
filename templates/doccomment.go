package templates

import (
	"go/build/constraint"
	"go/doc/comment"
	"slices"
	"strings"
)

// docComment is the text of a doc comment with a paragraph before and one behind what an author wrote, in the form that
// gofmt leaves as it is. Definitions of links stay at the end, where gofmt puts them.
func docComment(before, written, behind string) string {
	var parser comment.Parser
	doc := parser.Parse(harmless(written))
	doc.Content = slices.Concat([]comment.Block{paragraph(before)}, doc.Content, []comment.Block{paragraph(behind)})
	text := printed(doc)
	if again := parser.Parse(text); keepParagraphs(doc, again) {
		text = printed(doc)
	} else if printed(again) == text {
		return text
	}
	return settled(text)
}

// settled is the text of a doc comment as gofmt leaves it. Some texts it changes twice.
func settled(text string) string {
	var parser comment.Parser
	for range 5 {
		again := printed(parser.Parse(text))
		if again == text {
			break
		}
		text = again
	}
	return text
}

func paragraph(text string) *comment.Paragraph {
	return &comment.Paragraph{Text: []comment.Text{comment.Plain(text)}}
}

func printed(doc *comment.Doc) string {
	return string((&comment.Printer{}).Comment(doc))
}

// keepParagraphs ends the sentence of what was a paragraph where it stood, first or last, and is a heading where it
// stands now, as the doc was read again.
func keepParagraphs(doc, again *comment.Doc) (changed bool) {
	if len(again.Content) != len(doc.Content) {
		return false
	}
	for i, block := range again.Content {
		p, was := doc.Content[i].(*comment.Paragraph)
		if _, is := block.(*comment.Heading); was && is {
			p.Text = append(p.Text, comment.Plain("."))
			changed = true
		}
	}
	return changed
}

// harmless takes the effect from lines that gofmt would make a build constraint of the whole file.
func harmless(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if constraint.IsPlusBuild("//" + line) {
			words := strings.TrimLeft(line, " \t")
			line = line[:len(line)-len(words)] + "// " + words
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
