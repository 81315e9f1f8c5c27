package gen

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/smallage/smallage/templates"
)

// templatePart is literal text, or what stands between braces: a parameter and perhaps fields.
type templatePart struct {
	literal string
	path    []string
}

// parseTemplate splits a dedup template. Braces are doubled to stand for themselves.
func parseTemplate(s string) (parts []templatePart, problem string) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, templatePart{literal: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "{{"), strings.HasPrefix(s[i:], "}}"):
			literal.WriteByte(s[i])
			i++
		case s[i] == '}':
			return nil, "has a } without a {; write {parameter}, or }} for a brace itself"
		case s[i] == '{':
			end := strings.IndexAny(s[i+1:], "{}")
			if end < 0 || s[i+1+end] != '}' {
				return nil, "has a { without a }; write {parameter}, or {{ for a brace itself"
			}
			inside := s[i+1 : i+1+end]
			path := strings.Split(inside, ".")
			for _, name := range path {
				if !token.IsIdentifier(name) {
					return nil, fmt.Sprintf("has %s between braces; write a parameter, or a parameter, a dot and a field", show(inside))
				}
			}
			flush()
			parts = append(parts, templatePart{path: path})
			i += end + 1
		default:
			literal.WriteByte(s[i])
		}
	}
	flush()
	return parts, ""
}

// isSeparator holds for the characters that are escaped inside of values where a template uses them.
func isSeparator(c byte) bool {
	return c >= ' ' && c < 0x7f && c != '%' && !isASCIIWord(c)
}

func isASCIIWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// separators returns the characters that keep neighbouring values apart, and the first two values that none does.
// Of every literal between two values, one separator is enough: it cannot occur in the value before it.
func separators(parts []templatePart) (chars string, left, right []string) {
	var last []string
	between := ""
	for _, p := range parts {
		if p.path == nil {
			between += p.literal
			continue
		}
		if last != nil {
			at := strings.IndexFunc(between, func(r rune) bool { return r < 0x80 && isSeparator(byte(r)) })
			if at < 0 {
				return "", last, p.path
			}
			if !strings.Contains(chars, between[at:at+1]) {
				chars += between[at : at+1]
			}
		}
		last, between = p.path, ""
	}
	return chars, nil, nil
}

// checkTemplate turns the directive's dedup template into the task's key.
func (t *task) checkTemplate(r *reporter) {
	if t.settings.Dedup == "" {
		return
	}
	at := t.keyAt("dedup")
	parts, problem := parseTemplate(t.settings.Dedup)
	if problem != "" {
		r.report(badTemplate, at, problem)
		t.broken = true
		return
	}
	key, ok := &templates.Key{}, true
	literal := false
	used := map[*param]bool{}
	for _, part := range parts {
		if part.path == nil {
			literal = true
			key.Parts = append(key.Parts, templates.KeyPart{Literal: part.literal})
			continue
		}
		p := t.templateValue(part.path, at, r)
		if p == nil {
			ok = false
			continue
		}
		used[p] = true
		key.Parts = append(key.Parts, templates.KeyPart{Param: &p.Param, Fields: part.path[1:]})
	}
	if !literal {
		r.report(templateLiteral, at, fmt.Sprintf("dedup=%q", strings.ToLower(t.decl.Name.Name)+":"+t.settings.Dedup))
		ok = false
	}
	chars, left, right := separators(parts)
	if left != nil {
		r.report(templateSeparator, at, "{"+strings.Join(left, ".")+"}", "{"+strings.Join(right, ".")+"}")
		ok = false
	}
	if !ok {
		t.broken = true
		return
	}
	key.Separators = chars
	for _, p := range t.params {
		if used[p] {
			key.Params = append(key.Params, &p.Param)
		}
	}
	t.Key = key
}

// templateValue finds the value that a path names, and returns nil where it cannot be used.
func (t *task) templateValue(path []string, at token.Position, r *reporter) *param {
	p := t.param(path[0])
	if p == nil {
		t.unknown("dedup", path[0], r)
		return nil
	}
	if p.Dependency != nil {
		r.report(templateInjected, at, path[0])
		return nil
	}
	if _, _, invalid := t.source.invalidPart(p.Type, true); invalid {
		return p // reported where it is declared
	}
	typ := p.Type
	text := "{" + strings.Join(path, ".") + "}"
	for i, name := range path[1:] {
		structure, ok := typ.Underlying().(*types.Struct)
		if !ok {
			r.report(templateField, at, text, fmt.Sprintf("%s is of type %s, which is not a struct", strings.Join(path[:i+1], "."), t.typeText(typ)))
			return nil
		}
		field := structField(structure, name)
		if field == nil {
			r.report(templateField, at, text, fmt.Sprintf("%s has no field %s of its own%s", t.typeText(typ), name, didYouMean(name, fieldNames(structure))))
			return nil
		}
		if !field.Exported() {
			r.report(templateField, at, text, fmt.Sprintf("the field %s is unexported", name))
			return nil
		}
		typ = field.Type()
	}
	if !hasKeyText(typ) {
		r.report(templateType, at, text, t.typeText(typ))
		return nil
	}
	if !isNamed(typ, "time", "Time") && methodOf(typ, "MarshalText", "time", "Time") {
		r.report(templateTime, at, text, t.typeText(typ), timeInside(typ, path))
		return nil
	}
	return p
}

// timeInside says how a template names the time.Time that a type embeds.
func timeInside(t types.Type, path []string) string {
	for fields, at := range promotion(t, "MarshalText", nil) {
		field := fields.Field(at)
		if !field.Exported() {
			return "pass the time.Time as a parameter of its own"
		}
		path = append(slices.Clone(path), field.Name())
	}
	return "write {" + strings.Join(path, ".") + "}"
}

func structField(s *types.Struct, name string) *types.Var {
	for f := range s.Fields() {
		if f.Name() == name {
			return f
		}
	}
	return nil
}

func fieldNames(s *types.Struct) []string {
	var names []string
	for f := range s.Fields() {
		if f.Exported() {
			names = append(names, f.Name())
		}
	}
	return names
}

// hasKeyText holds for types of which equal values have one text and different ones different texts, as the runtime's
// KeyText writes them.
func hasKeyText(t types.Type) bool {
	if implements(t, textMarshaler) {
		_, isPointer := t.Underlying().(*types.Pointer)
		return !isPointer && !types.IsInterface(t) && promotedFrom(t, "MarshalText", nil) == "" && throughPointer(t, "MarshalText", nil) == ""
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsString|types.IsInteger|types.IsBoolean) != 0
}
