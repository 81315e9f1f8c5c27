package templates

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// wholeModel is a file in which every field of the model is set.
func wholeModel() *File {
	store := &Dependency{Name: "store", Type: named("example.com/db", "db", "Store"), Nullable: true}
	service := &Dependency{Name: "service", Type: types.NewPointer(named("example.com/tasks", "tasks", "Service")), Nullable: true}
	id := &Param{Name: "id", Field: "ID", Type: types.Typ[types.String]}
	return &File{
		Package: "tasks", Path: "example.com/tasks", Module: "example.com", Comment: "Package tasks works.", Dir: "/tasks",
		Constraint: "!smallagegen", Callers: true,
		Table: &Table{
			Dependencies: []*Dependency{service, store},
			Client:       &Package{Path: "example.com/tasks/client", Name: "client"},
		},
		Taken: map[string]bool{"Service": true},
		Tasks: []*Task{{
			Prefix: "Charge", Name: "tasks.Charge", Func: "Charge", Receiver: service, Method: service.Type, Doc: "Charge charges.",
			Params: []*Param{
				{Name: "store", Field: "Store", Type: store.Type, Dependency: store},
				id,
				{Name: "rest", Field: "Rest", Type: types.NewSlice(types.Typ[types.Int]), Variadic: true},
			},
			Result: Result{Kind: Pointer, Type: named("example.com/tasks", "tasks", "Receipt")},
			Settings: Settings{
				Aliases: []string{"tasks.Bill"}, Queue: "billing", Dedup: "charge:{id.A}", ResultTTL: time.Second, ExpiresIn: time.Minute,
				Attempts: 5, Backoff: time.Second, BackoffMax: time.Minute, Timeout: time.Hour, DedupTTL: time.Hour, Optional: []string{"id"},
			},
			Key: &Key{
				Parts:  []KeyPart{{Literal: "charge:"}, {Param: id, Fields: []string{"A"}}},
				Params: []*Param{id}, Separators: ":",
			},
		}},
	}
}

func named(path, pkg, name string) *types.Named {
	object := types.NewTypeName(token.NoPos, types.NewPackage(path, pkg), name, nil)
	return types.NewNamed(object, types.NewStruct(nil, nil), nil)
}

func fingerprint(t *testing.T, f *File) string {
	t.Helper()
	sum, err := Fingerprint(f)
	require.NoError(t, err)
	return string(sum[:])
}

func TestFingerprintIsTheSameForTheSameModel(t *testing.T) {
	t.Parallel()
	a, b := wholeModel(), wholeModel()
	for i := range 20 {
		a.Taken[fmt.Sprint("n", i)] = true
		b.Taken[fmt.Sprint("n", 19-i)] = true
	}
	require.Equal(t, fingerprint(t, a), fingerprint(t, a))
	require.Equal(t, fingerprint(t, a), fingerprint(t, b))
}

// TestFingerprintCoversEveryField changes every value that the model holds, one at a time.
func TestFingerprintCoversEveryField(t *testing.T) {
	t.Parallel()
	f := wholeModel()
	whole := fingerprint(t, f)
	set, changed := map[string]bool{}, 0 // the fields that some value has, by struct and name
	shared := map[any]int{}
	eachValue(reflect.ValueOf(f), func(v reflect.Value, _, _ string) {
		if v.Kind() == reflect.Pointer {
			shared[v.Interface()]++
		}
	})
	eachValue(reflect.ValueOf(f), func(v reflect.Value, path, field string) {
		if !v.IsZero() {
			set[field] = true
		}
		for _, other := range others(v, v.Kind() == reflect.Pointer && shared[v.Interface()] > 1) {
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			v.Set(other)
			require.NotEqual(t, whole, fingerprint(t, f), "%s is %v, and the fingerprint is as before", path, other)
			v.Set(old)
			changed++
		}
	})
	require.Equal(t, whole, fingerprint(t, f), "the changes were not undone")
	require.Greater(t, changed, 200)
	for _, typ := range modelTypes(reflect.TypeFor[File](), map[reflect.Type]bool{}) {
		for i := range typ.NumField() {
			name := typ.Name() + "." + typ.Field(i).Name
			require.True(t, set[name], "wholeModel sets no %s, so that nothing shows that it counts", name)
		}
	}
}

func TestFingerprintTellsWhereATextEnds(t *testing.T) {
	t.Parallel()
	whole := fingerprint(t, wholeModel())
	for _, move := range []func(f *File){
		func(f *File) { f.Package, f.Path = f.Package+f.Path[:1], f.Path[1:] },
		func(f *File) { f.Tasks[0].Settings.Queue, f.Tasks[0].Settings.Dedup = "billingc", "harge:{id.A}" },
		func(f *File) { f.Tasks[0].Settings.Aliases = []string{"tasks.", "Bill"} },
		func(f *File) { f.Taken = map[string]bool{"Serv": true, "ice": true} },
	} {
		f := wholeModel()
		move(f)
		require.NotEqual(t, whole, fingerprint(t, f))
	}
}

// eachValue calls visit for every value below v that can be set, with the way to it, and the field that it is in.
func eachValue(v reflect.Value, visit func(v reflect.Value, path, field string)) {
	seen := map[any]bool{}
	var walk func(v reflect.Value, path, field string)
	walk = func(v reflect.Value, path, field string) {
		if v.CanSet() {
			visit(v, path, field)
		}
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() && !seen[v.Interface()] {
				seen[v.Interface()] = true
				walk(v.Elem(), path, field)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				walk(v.Field(i), path+"."+name, v.Type().Name()+"."+name)
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i), field)
			}
		}
	}
	walk(v, "File", "")
}

// others returns values that differ from v. Where a pointer is shared, a pointer to an equal value is one.
func others(v reflect.Value, shared bool) (list []reflect.Value) {
	add := func(value any) { list = append(list, reflect.ValueOf(value).Convert(v.Type())) }
	switch v.Kind() {
	case reflect.Bool:
		add(!v.Bool())
	case reflect.Int, reflect.Int64:
		add(v.Int() + 1)
		add(v.Int() - 300)
	case reflect.String:
		add(v.String() + " ")
		add(" " + v.String())
	case reflect.Slice:
		list = append(list, reflect.AppendSlice(reflect.MakeSlice(v.Type(), 1, 1), v))
		if !v.IsNil() {
			list = append(list, reflect.Zero(v.Type()))
		}
	case reflect.Map:
		add(map[string]bool{"Service": true, "Receipt": true})
		add(map[string]bool{"Service": false})
		add(map[string]bool(nil))
	case reflect.Pointer:
		if !v.IsNil() {
			list = append(list, reflect.Zero(v.Type()))
		}
		if shared && !v.IsNil() {
			twin := reflect.New(v.Type().Elem())
			twin.Elem().Set(v.Elem())
			list = append(list, twin)
		}
	case reflect.Interface:
		for _, typ := range someTypes() {
			if v.IsNil() || !types.Identical(typ, v.Interface().(types.Type)) {
				list = append(list, reflect.ValueOf(typ))
			}
		}
	}
	return list
}

func modelTypes(typ reflect.Type, seen map[reflect.Type]bool) (list []reflect.Type) {
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return modelTypes(typ.Elem(), seen)
	case reflect.Struct:
		if seen[typ] {
			return nil
		}
		seen[typ] = true
		list = append(list, typ)
		for i := range typ.NumField() {
			list = append(list, modelTypes(typ.Field(i).Type, seen)...)
		}
	}
	return list
}

// someTypes are types of which no two are written the same, or treated the same.
func someTypes() []types.Type {
	text := types.Typ[types.String]
	pkg := types.NewPackage("example.com/tasks", "tasks")
	alias := func(name string, of types.Type) types.Type {
		return types.NewAlias(types.NewTypeName(token.NoPos, pkg, name, nil), of)
	}
	structure := func(tag string, embedded bool, names ...string) types.Type {
		var fields []*types.Var
		var tags []string
		for _, name := range names {
			fields, tags = append(fields, types.NewField(token.NoPos, pkg, name, text, embedded)), append(tags, tag)
		}
		return types.NewStruct(fields, tags)
	}
	method := func(name string, results ...*types.Var) *types.Func {
		return types.NewFunc(token.NoPos, pkg, name, types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(results...), false))
	}
	anyType := types.Universe.Lookup("any").Type()
	return []types.Type{
		text, types.Typ[types.Uint8], types.Universe.Lookup("byte").Type(), types.Typ[types.UnsafePointer],
		named("example.com/a", "a", "ID"), named("example.com/a", "b", "ID"), named("example.com/b", "a", "ID"), named("example.com/a", "a", "IDs"),
		alias("S", text), alias("S", types.Typ[types.Int]), alias("S", types.NewPointer(text)), alias("T", text),
		types.NewPointer(text), types.NewSlice(text), types.NewArray(text, 2), types.NewArray(text, 3),
		types.NewMap(text, text), types.NewMap(text, types.Typ[types.Int]), types.NewChan(types.SendOnly, text), types.NewChan(types.RecvOnly, text),
		structure("", false), structure("", false, "String"), structure("", true, "String"), structure(`json:"a"`, false, "String"),
		structure("", false, "String", "B"), structure("", false, "B", "String"),
		anyType, types.Unalias(anyType), types.NewInterfaceType(nil, nil).Complete(), types.Universe.Lookup("error").Type(),
		types.NewInterfaceType([]*types.Func{method("A")}, nil).Complete(),
		types.NewInterfaceType([]*types.Func{method("A", types.NewVar(token.NoPos, pkg, "", text))}, nil).Complete(),
		method("A").Type(), types.NewSignatureType(nil, nil, nil, types.NewTuple(types.NewVar(token.NoPos, pkg, "", types.NewSlice(text))), nil, true),
	}
}

func TestFingerprintTellsTypesApart(t *testing.T) {
	t.Parallel()
	sums := map[string]types.Type{}
	for _, typ := range someTypes() {
		f := wholeModel()
		f.Tasks[0].Method = typ
		sum := fingerprint(t, f)
		if other, twice := sums[sum]; twice {
			require.Equal(t, render(t, f), renderWith(t, other), "%v and %v have one fingerprint", typ, other)
		}
		sums[sum] = typ
	}
	require.GreaterOrEqual(t, len(sums), len(someTypes())-1, "only interface{} by itself and any's may be one")
}

func renderWith(t *testing.T, method types.Type) string {
	t.Helper()
	f := wholeModel()
	f.Tasks[0].Method = method
	return render(t, f)
}

func render(t *testing.T, f *File) string {
	t.Helper()
	source, err := Render(f)
	require.NoError(t, err)
	return string(source)
}

func TestFingerprintRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	text := "text"
	for _, value := range []any{
		struct{ F func() }{func() {}},
		struct{ C chan int }{},
		struct{ A any }{1},
		struct{ M map[int]string }{},
		struct{ F float64 }{},
		struct{ t types.Type }{types.Typ[types.Int]},
		struct{ p *string }{&text},
		[]any{1},
		map[string]any{"a": 1},
	} {
		e := &encoder{seen: map[any]int{}, types: map[types.Type][]byte{}}
		require.ErrorContains(t, e.value(reflect.ValueOf(value)), "no fingerprint", "%T", value)
	}
}

// TestRenderingAsksNoMoreOfTypes holds all that rendering uses of package types against what encoder.typ writes. What is
// new here must show in the fingerprint first: in a type's text, in the names in it, in whether it takes several lines,
// in its kind, or behind its alias.
func TestRenderingAsksNoMoreOfTypes(t *testing.T) {
	t.Parallel()
	list, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax,
	}, ".")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Empty(t, list[0].Errors)
	fileOf := func(at token.Pos) string { return filepath.Base(list[0].Fset.Position(at).Filename) }
	used := map[string]map[string]bool{}
	for id, object := range list[0].TypesInfo.Uses {
		file := fileOf(id.Pos())
		if object.Pkg() != nil && object.Pkg().Path() == "go/types" && file != "fingerprint.go" {
			if used[file] == nil {
				used[file] = map[string]bool{}
			}
			used[file][object.Name()] = true
		}
	}
	found := map[string]string{}
	for file, names := range used {
		found[file] = strings.Join(slices.Sorted(maps.Keys(names)), " ")
	}
	require.Equal(t, map[string]string{
		"dispatch.go": "Elem Pointer Slice Unalias",
		"imports.go":  "Name Names Package Path Type TypeString Universe",
		"model.go":    "Type",
		"names.go":    "Package Path Type",
		"walk.go": "Alias Array Basic Chan Elem EmbeddedTypes ExplicitMethods Fields Interface Key Kind Map Name Named NumEmbeddeds " +
			"NumExplicitMethods NumFields Obj Object Package Params Pkg Pointer Results Signature Slice Struct Terms Tuple Type TypeArgs " +
			"TypeList Types Union Unsafe UnsafePointer Variables",
	}, found)
	var walking []string
	for _, file := range list[0].Syntax {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fileOf(fn.Pos()) == "walk.go" {
				walking = append(walking, fn.Name.Name)
			}
		}
	}
	require.Equal(t, []string{"walkNames", "walkArguments", "WalkNames", "takesLines", "anyTakesLines", "anyArgTakesLines"}, walking)
}
