package gen

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"os"

	"github.com/smallage/smallage/templates"
)

// settleOrphans decides what becomes of generated files that nothing asks for any more. Below go generate they may not
// just go: the go command has listed the files that it is still to read, and fails where one is gone. They are emptied
// instead, under a constraint that no build meets, and the next run removes what is left.
func settleOrphans(o Options, orphans []string, out *Output) error {
	for _, path := range orphans {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read %s, which is no longer needed: %w", path, err)
		}
		switch {
		case isLeftover(data) && o.Check: // as good as gone
		case isLeftover(data) || !o.GoGenerate:
			out.Remove = append(out.Remove, path)
		default:
			out.Files[path] = leftover(data)
		}
	}
	return nil
}

const leftoverMark = "\n//go:build ignore\n"

func isLeftover(data []byte) bool {
	return isOurs(data) && bytes.Contains(plainLines(data), []byte(leftoverMark))
}

func leftover(data []byte) []byte {
	name := "p"
	if syntax, _ := parser.ParseFile(token.NewFileSet(), "", data, parser.PackageClauseOnly); syntax != nil && syntax.Name != nil {
		name = syntax.Name.Name
	}
	return fmt.Appendf(nil, "%s\n%s\npackage %s // has no task any more; the next run removes this file\n", templates.Header, leftoverMark, name)
}
