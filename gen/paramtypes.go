package gen

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/smallage/smallage/templates"
)

// checkParam refuses types that do not check, that are generated, or that would not arrive as they were sent.
func (t *task) checkParam(p *param, r *reporter) {
	if !t.checkType("parameter "+p.Name, p.Type, p.Dependency == nil, p.expr, p.at, r) {
		return
	}
	if t.lacksContext && isContext(p.Type) {
		return // said already
	}
	if p.Dependency != nil {
		t.checkLock("the dependency "+p.Name, p.Type, p.at, r)
		return
	}
	if problem := checkJSON(p.Type, t.source.Types); problem != "" {
		r.report(lossyType, p.at, p.Name, t.label(), problem)
		t.broken = true
	}
}

// checkLock refuses values that must not be copied.
func (t *task) checkLock(what string, typ types.Type, at token.Position, r *reporter) {
	if lock := lockIn(typ); lock != "" {
		r.report(copiedLock, at, what, t.label(), lock)
		t.broken = true
	}
}

// checkType refuses types that cannot be used at all, for an argument, a dependency or a result. Of arguments the inside
// of named types must check, too, since it is looked at.
func (t *task) checkType(what string, typ types.Type, deep bool, expr ast.Expr, at token.Position, r *reporter) bool {
	if name := t.generatedName(expr); name != "" {
		r.report(generatedType, at, what, t.label(), name)
		t.broken = true
		return false
	}
	way, declared, invalid := t.source.invalidPart(typ, deep)
	if invalid && declared != nil {
		if inner := t.source.declaration(declared.Pos()); inner != nil {
			if name := t.generatedName(inner); name != "" {
				r.report(generatedType, at, what, t.label(), name)
				t.broken = true
				return false
			}
		}
	}
	if invalid || t.source.typeError(expr.Pos(), expr.End()) != "" {
		r.report(invalidType, at, what, t.label(), t.source.whyInvalid(expr, way, declared))
		t.broken = true
		return false
	}
	cgo := ""
	templates.WalkNames(typ, func(pkg *types.Package, name string) {
		if pkg == t.source.Types && strings.HasPrefix(name, cgoPrefix) {
			cgo = "C." + strings.TrimPrefix(name, cgoPrefix)
		}
	})
	if cgo != "" {
		r.report(cgoType, at, what, t.label(), cgo)
		t.broken = true
		return false
	}
	return true
}

// generatedName returns the name in a type expression that is generated for a task of the package, or declared in a
// generated file of another.
func (t *task) generatedName(expr ast.Expr) string {
	found := ""
	ast.Inspect(expr, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || found != "" {
			return found == ""
		}
		obj := t.source.TypesInfo.Uses[id]
		if obj == nil {
			for _, other := range t.source.tasks {
				if slices.Contains(other.Names().All(), id.Name) {
					found = id.Name
				}
			}
			return true
		}
		if _, isType := obj.(*types.TypeName); isType && obj.Pos().IsValid() && strings.HasSuffix(t.source.at(obj.Pos()).Filename, "/"+templates.FileName) {
			found = id.Name
		}
		return true
	})
	return found
}

// typeText writes a type as the package's own files would, near enough for a message.
func (t *task) typeText(typ types.Type) string { return typeText(typ, t.source.Types) }

func typeText(typ types.Type, local *types.Package) string {
	text := types.TypeString(typ, func(p *types.Package) string {
		if p == local {
			return ""
		}
		return p.Name()
	})
	return strings.ReplaceAll(text, cgoPrefix, "C.")
}

// cgoPrefix begins the names that cgo gives to the types of package C.
const cgoPrefix = "_Ctype_"
