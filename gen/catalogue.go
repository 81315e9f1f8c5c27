package gen

import "slices"

// Kind is one kind of diagnostic. The catalogue of all kinds is what docs/diagnostics.md shows.
type Kind struct {
	Name   string // in brackets at the end of every diagnostic of the kind
	Format string // for fmt.Sprintf: what is wrong; what to write instead
	Cause  string // why it is refused
	Remedy string // what to do
}

var kinds []*Kind

func kind(name, format, cause, remedy string) *Kind {
	k := &Kind{Name: name, Format: format, Cause: cause, Remedy: remedy}
	kinds = append(kinds, k)
	return k
}

// Catalogue returns every kind of diagnostic, sorted by name.
func Catalogue() []*Kind {
	all := slices.Clone(kinds)
	slices.SortFunc(all, func(a, b *Kind) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}
