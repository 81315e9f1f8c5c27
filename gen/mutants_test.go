package gen

import (
	"context"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

var (
	mutantCount = flag.Int("mutants", 2, "how many damaged copies of every scenario are tried")
	mutantSeed  = flag.Uint64("mutants.seed", 1, "the seed of the damage")
)

// TestMutants damages the scenarios' sources, a few tokens each. Whatever the source is like, the generator must neither
// panic nor hang; and what it accepts without a type error must be code that compiles, which TestAccepted shows for whole
// sources.
func TestMutants(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, "example.com")
	random := rand.New(rand.NewPCG(*mutantSeed, 0))
	var names []string
	for _, folder := range []string{"accepted", "refused"} {
		for _, s := range scenarios(t, folder) {
			for n := range *mutantCount {
				name := fmt.Sprintf("%s-m%d", s.name, n)
				names = append(names, name)
				for _, f := range s.archive.Files {
					if !isSource(f.Name) || strings.HasSuffix(f.Name, "go.mod") {
						continue
					}
					text := strings.ReplaceAll(string(f.Data), "example.com/"+s.name+"/", "example.com/"+name+"/")
					w.write(name+"/"+f.Name, damaged(text, random))
				}
			}
		}
	}
	all, err := load(context.Background(), Options{Dir: w.dir, Patterns: []string{"./..."}, Env: w.env})
	require.NoError(t, err)
	for _, name := range names {
		var own []*packages.Package
		for _, p := range all {
			if strings.HasPrefix(p.PkgPath+"/", "example.com/"+name+"/") {
				own = append(own, p)
			}
		}
		out, err := fromPackages(Options{Dir: filepath.Join(w.dir, name), Patterns: []string{"./..."}}, own)
		require.NoError(t, err, name)
		for _, d := range out.Diagnostics {
			require.NotContains(t, d.String(), "%!", name)
		}
	}
}

// damaged removes, doubles or swaps a few tokens. Imports stay, because nothing may be fetched.
func damaged(text string, random *rand.Rand) string {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	type piece struct{ from, to int }
	var pieces []piece
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		from := file.Offset(pos)
		length := len(literal)
		if length == 0 {
			length = len(tok.String())
		}
		if tok == token.SEMICOLON && literal == "\n" || from+length > len(text) || strings.HasPrefix(literal, "\"") {
			continue
		}
		pieces = append(pieces, piece{from, from + length})
	}
	if len(pieces) < 8 {
		return text
	}
	for range 1 + random.IntN(2) {
		i := 4 + random.IntN(len(pieces)-6)
		p, next := pieces[i], pieces[i+1]
		if next.to > len(text) {
			break
		}
		switch random.IntN(4) {
		case 0:
			text = text[:p.from] + strings.Repeat(" ", p.to-p.from) + text[p.to:]
		case 1:
			text = text[:p.from] + text[next.from:next.to] + text[p.to:next.from] + text[p.from:p.to] + text[next.to:]
		case 2:
			return text[:p.to] + " " + text[p.from:]
		default:
			other := pieces[4+random.IntN(len(pieces)-6)]
			if other.to <= len(text) {
				return text[:p.from] + text[other.from:other.to] + text[p.to:]
			}
		}
	}
	return text
}
