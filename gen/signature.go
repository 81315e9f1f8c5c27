package gen

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/smallage/smallage/templates"
)

// param is a parameter of a task with where it is declared.
type param struct {
	templates.Param
	at   token.Position
	expr ast.Expr // its type as written
	obj  *types.Var
}

// checkSignature turns the function's parameters and results into the task's, and reports what cannot be.
func (t *task) checkSignature(r *reporter) {
	if !t.checkFunction(r) {
		t.broken, t.uncallable = true, true
		return
	}
	signature := t.fn.Signature()
	if !t.checkContext(signature, r) {
		t.broken, t.lacksContext = true, true
	}
	t.readParams(r)
	t.checkNames(r)
	t.settleInjected(r)
	for _, p := range t.params {
		t.checkParam(p, r)
	}
	if recv := signature.Recv(); recv != nil {
		t.checkLock("the receiver", recv.Type(), t.at(), r)
	}
	t.checkResults(signature, r)
}

// checkFunction refuses functions that a worker could not call.
func (t *task) checkFunction(r *reporter) bool {
	name := t.decl.Name.Name
	switch {
	case t.decl.Recv == nil && (name == "init" || name == "main" && t.source.Name == "main"), name == "_":
		r.report(specialFunction, t.at(), name)
		return false
	case t.fn == nil:
		r.report(invalidType, t.at(), "the signature", name, "the function is not part of the package")
		return false
	case t.decl.Type.TypeParams != nil, t.fn.Signature().RecvTypeParams().Len() > 0:
		r.report(genericFunction, t.at(), t.label())
		return false
	}
	if problem := t.checkReceiver(); problem != "" {
		r.report(invalidType, t.source.at(t.decl.Recv.Pos()), "the receiver", t.label(), problem)
		return false
	}
	return true
}

// checkReceiver returns what keeps a method from being one of a type that the package declares. The receiver's own type
// may be good where the method is not allowed: of a pointer to an interface, or with two receivers.
func (t *task) checkReceiver() string {
	if t.decl.Recv == nil {
		return ""
	}
	if reason := t.source.typeError(t.decl.Recv.Pos(), t.decl.Recv.End()); reason != "" {
		return oneLine(reason)
	}
	if recv := t.fn.Signature().Recv(); recv != nil {
		if name := receiverTypeName(recv.Type()); name != nil && name.Pkg() == t.source.Types {
			return ""
		}
	}
	return "it is not a type of this package"
}

func (t *task) checkContext(signature *types.Signature, r *reporter) bool {
	params := signature.Params()
	if params.Len() > 0 && isNamed(params.At(0).Type(), "context", "Context") && !(signature.Variadic() && params.Len() == 1) {
		return true
	}
	more := ""
	if params.Len() > 1 || params.Len() == 1 && !isContext(params.At(0).Type()) {
		more = ", …"
	}
	r.report(noContext, t.at(), t.label(), t.decl.Name.Name, more)
	return false
}

// isContext holds for what may be meant as a handler's context: one, an interface with a context's methods, or a pointer
// to or a list of some.
func isContext(t types.Type) bool {
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		return isContext(u.Elem())
	case *types.Slice:
		return isContext(u.Elem())
	}
	if isNamed(t, "context", "Context") {
		return true
	}
	i, ok := t.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	for _, name := range []string{"Deadline", "Done", "Err", "Value"} {
		if obj, _, _ := types.LookupFieldOrMethod(i, false, nil, name); obj == nil {
			return false
		}
	}
	return true
}

// isNamed holds for the named type of that package and name, also through an alias.
func isNamed(t types.Type, path, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path
}

// readParams lists the parameters after the first, which is the context.
func (t *task) readParams(r *reporter) {
	signature := t.fn.Signature()
	index := 0
	for _, fieldList := range t.decl.Type.Params.List {
		names := fieldList.Names
		if len(names) == 0 {
			names = []*ast.Ident{nil}
		}
		for _, id := range names {
			obj := signature.Params().At(index)
			index++
			if index == 1 && isNamed(obj.Type(), "context", "Context") {
				continue
			}
			if id == nil || id.Name == "_" {
				r.report(unnamedParameter, t.source.at(fieldList.Pos()), index, t.label(), t.typeText(obj.Type()))
				t.broken = true
				continue
			}
			t.params = append(t.params, &param{
				Param: templates.Param{
					Name: id.Name, Field: templates.Exported(id.Name), Type: obj.Type(),
					Variadic: signature.Variadic() && index == signature.Params().Len(),
				},
				at: t.source.at(id.Pos()), expr: fieldList.Type, obj: obj,
			})
		}
	}
}

// checkNames refuses names that JSON or the argument struct would confuse.
func (t *task) checkNames(r *reporter) {
	t.checkRepeated(r)
	for i, p := range t.params {
		for _, other := range t.params[:i] {
			switch {
			case p.Name == other.Name: // said already
				continue
			case strings.EqualFold(p.Name, other.Name):
				r.report(similarParameters, p.at, other.Name, p.Name, t.label())
			case p.Field == other.Field:
				r.report(sameField, p.at, other.Name, p.Name, t.label(), p.Field)
			default:
				continue
			}
			t.broken = true
		}
	}
}

// settleInjected marks the parameters that the worker supplies, and checks the names in inject and optional.
func (t *task) settleInjected(r *reporter) {
	for _, name := range t.settings.inject {
		if p := t.param(name); p != nil {
			p.Dependency = &templates.Dependency{Name: p.Name, Type: p.Type, Nullable: nullable(p.Type)}
			continue
		}
		t.unknown("inject", name, r)
	}
	for _, name := range t.settings.Optional {
		switch p := t.param(name); {
		case p == nil:
			t.unknown("optional", name, r)
		case p.Dependency != nil:
			r.report(optionalInjected, t.keyAt("optional"), name)
			t.broken = true
		}
	}
}

func (t *task) param(name string) *param {
	for _, p := range t.params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (t *task) paramNames() []string {
	names := make([]string, len(t.params))
	for i, p := range t.params {
		names[i] = p.Name
	}
	return names
}

// unknown reports a name in a directive that is no parameter.
func (t *task) unknown(key, name string, r *reporter) {
	names := "none"
	if len(t.params) > 0 {
		names = strings.Join(t.paramNames(), ", ")
	}
	r.report(unknownParameter, t.keyAt(key), key, name, t.label(), didYouMean(name, t.paramNames()), names)
	t.broken = true
}

// nullable holds for types of which a nil value can be refused at start. A nil slice is an empty one and passes.
func nullable(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Interface, *types.Signature, *types.Chan, *types.Map:
		return true
	}
	return false
}

// receiverName is the name of the receiver's type as written, or "".
func receiverName(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return ""
	}
	name := ""
	ast.Inspect(decl.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}
