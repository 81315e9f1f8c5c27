package gen

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/smallage/smallage/templates"
)

// settle gives the task its names and settings, once signature and directive are read.
func (t *task) settle(r *reporter) {
	t.Func = t.decl.Name.Name
	function := t.Func
	if name := receiverName(t.decl); name != "" {
		function = name + "." + t.Func
		t.Prefix = name + t.Func
	} else {
		t.Prefix = t.Func
	}
	if t.settings.as != "" {
		t.Prefix = t.settings.as
	}
	t.Name = t.settings.name
	if t.Name == "" {
		t.Name = t.source.Name + "." + function
		if t.source.Name == "main" {
			r.report(mainName, t.at(), t.label(), "<binary>."+function)
			t.broken = true
		}
	}
	t.Settings = t.settings.Settings
}

// checkIdentifiers refuses generated names that are taken: by the package, by a file's imports, or by another task.
func (s *source) checkIdentifiers(r *reporter) {
	if s.client != nil {
		s.client.checkIdentifiers(s, r)
	}
	declared, imported := s.names(), s.imported()
	takenAt := func(name string) (token.Position, bool) {
		if at, ok := declared[name]; ok {
			return at, true
		}
		at, ok := imported[name]
		return at, ok
	}
	if at, taken := takenAt(templates.DispatchName); taken {
		r.report(dispatchTaken, at, at)
	}
	owner := map[string]*task{templates.DispatchName: nil}
	for _, t := range s.tasks {
		names := t.Names().All()
		if s.client != nil {
			names = []string{t.Names().Task}
		}
		for _, name := range names {
			if other, taken := owner[name]; taken && other != nil {
				if s.client != nil {
					break // said for the client
				}
				r.report(namesCollide, t.at(), t.label(), name, other.label(), other.at())
				break
			}
			owner[name] = t
			if at, taken := takenAt(name); taken {
				r.report(nameTaken, t.at(), t.label(), name, at)
			}
		}
	}
	s.checkPredeclared(declared, r)
}

// checkPredeclared refuses packages that hide a predeclared name that the generated file needs.
func (s *source) checkPredeclared(declared map[string]token.Position, r *reporter) {
	needed := map[string]bool{"error": true, "string": true}
	for _, t := range s.tasks {
		if t.Result.Kind == templates.Bytes {
			needed["byte"] = true
		}
		for _, p := range t.params {
			templates.WalkNames(p.Type, func(pkg *types.Package, name string) {
				if pkg == nil {
					needed[name] = true
				}
			})
		}
	}
	for _, name := range sortedKeys(needed) {
		if at, hidden := declared[name]; hidden {
			r.report(predeclaredHidden, at, name, at, name)
		}
	}
}

// checkNamesAcross refuses task names and aliases that two handlers of a run claim.
func checkNamesAcross(sources []*source, r *reporter) {
	owners := map[string]*task{}
	var all []*task
	for _, s := range sources {
		all = append(all, s.tasks...)
	}
	for _, t := range all {
		if t.Name == "" {
			continue
		}
		if other, taken := owners[t.Name]; taken {
			r.report(duplicateName, t.nameAt("name"), t.Name, other.where(t), other.at())
			continue
		}
		owners[t.Name] = t
	}
	aliases := map[string]*task{}
	for _, t := range all {
		for _, alias := range t.settings.Aliases {
			if other, taken := owners[alias]; taken {
				r.report(duplicateAlias, t.nameAt("aliases"), alias, "the name", other.where(t), other.at())
			} else if other, taken := aliases[alias]; taken {
				r.report(duplicateAlias, t.nameAt("aliases"), alias, "an alias", other.where(t), other.at())
			}
			aliases[alias] = t
		}
	}
}

// nameAt is where a name was given: at the key, or else at the function.
func (t *task) nameAt(key string) token.Position {
	if at, ok := t.words[key]; ok {
		return at
	}
	return t.at()
}

// where names the task for a message about another one, with its package if that is not the same.
func (t *task) where(other *task) string {
	if t.source == other.source {
		return t.label()
	}
	return t.source.PkgPath + "." + t.label()
}

// exportedPrefix suggests a prefix that can be used from another package.
func exportedPrefix(prefix string) string {
	if name := templates.Exported(prefix); ast.IsExported(name) {
		return name
	}
	return "Task"
}
