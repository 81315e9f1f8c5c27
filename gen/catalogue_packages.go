package gen

// What can be wrong with a package, or between packages.
var (
	loadFailed = kind("load-failed",
		"%s; %s",
		"The go command could not load the package.",
		"Do what the message says. `go list` shows the same error.")
	otherModule = kind("other-module",
		"the package %s is of the module %s, which is not the one at hand; run smallagegen there",
		"A dependency's files are not ours to write: they lie in the module cache, in vendor, or in a checkout of their own.",
		"Run smallagegen in that module, or name packages of your own.")
	importCycle = kind("import-cycle",
		"the package is in an import cycle (%s); where packages enqueue each other's tasks, give one a client package: //smallage:package client=…",
		"Two packages that enqueue each other's tasks would import each other.",
		"Give one of them, or both, a client package, and import that.")
	syntaxError = kind("syntax-error",
		"%s; correct the syntax first",
		"A file does not parse. Type errors do not matter, but a function cannot be found in a file without structure.",
		"Correct the syntax error.")
	nameTaken = kind("name-taken",
		"%s would generate %s, which is already declared at %s; rename that, or set another prefix with as=",
		"The package, or a file of it, already uses a name that is generated for a task.",
		"Rename the declaration, or give the task another prefix: `as=ChargeInvoice`.")
	namesCollide = kind("names-collide",
		"%s would generate %s, which %s at %s generates too; set another prefix with as=",
		"Two tasks of one package would generate the same identifier.",
		"Give one of them another prefix with `as=`.")
	dispatchTaken = kind("dispatch-taken",
		"the package already declares Dispatch, at %s, which is generated for its tasks; rename that",
		"Every package with tasks gets one function `Dispatch`.",
		"Rename the declaration.")
	predeclaredHidden = kind("predeclared-hidden",
		"the package declares %s, at %s, which hides the predeclared %s that generated code needs; rename that",
		"Generated code is part of the package, and cannot name a predeclared type that the package hides.",
		"Rename the declaration.")
	duplicateName = kind("duplicate-name",
		"the task name %s is taken by %s at %s; set name= on one of them",
		"A name on the wire belongs to one handler. The default is the package's name, a dot, and the function's name, so two packages of one name may clash.",
		"Give one of the two tasks a `name=` of its own.")
	duplicateAlias = kind("duplicate-alias",
		"the alias %s is also %s of %s at %s; remove one of them",
		"An alias is an older name on the wire, and a name on the wire belongs to one handler.",
		"Remove the alias from one of the two.")
	mainName = kind("main-needs-name",
		"the task %s in package main needs name=; write name=%s",
		"`main.X` recurs in every binary of a namespace, so that a task of package main must be named by hand.",
		"Set `name=` with a prefix that no other binary uses.")
	mixedConstraints = kind("mixed-constraints",
		"this task's file has %s, the one of %s at %s has %s; put the directives on functions in files without a constraint, which call the others",
		"There is one generated file per package, and it must be built exactly when all of its tasks are.",
		"Put the directive on an unconstrained function that calls the constrained one; or give all files with tasks the same constraint.")
	foreignFile = kind("foreign-file",
		"%s exists and was not written by smallagegen; rename it",
		"The generated file would overwrite a file that does not carry smallagegen's header.",
		"Rename the file, or remove it.")
	emptyFile = kind("empty-file",
		"%s is empty or was cut off, and there is no task here to generate it for; remove it",
		"The go command cannot build a package with a Go file that has no package clause. Where there are tasks, the file is written anew; where there are none, it is not certain to be smallagegen's.",
		"Remove the file, or name the package whose client it was.")
	dependencyTypes = kind("dependency-types",
		"the dependency %s has the type %s here and %s at %s; give them different names, or one type",
		"A dependency of Dispatch is known by its name and type, over all tasks of a package.",
		"Rename one parameter, or give both one type.")
	dependencyNames = kind("dependency-names",
		"the dependencies %s and %s (at %s) have one type, %s, and could be swapped unseen; use one name, or declare a type for each",
		"Dispatch takes its dependencies by position. Two of one type could be swapped without the compiler noticing.",
		"Use one name where it is one thing; else define a distinct type for each.")
	dependencySwap = kind("dependency-swap",
		"the dependencies %s and %s (at %s) could be swapped unseen: %s and %s can be assigned to each other; give one a method of its own, or make it a struct",
		"Dispatch takes its dependencies by position. Two interfaces with the same methods, or a named type beside the unnamed one of its form, are told apart by nobody.",
		"Make the types differ: another method, or a struct that holds the value.")
	clientValue = kind("client-value",
		"client=%s %s",
		"`client` is a folder, relative to the package's own, inside of the same module, whose name is a package name.",
		"Write a folder name such as `client=billingq`.")
	clientWithoutTasks = kind("client-without-tasks",
		"the package has a client= but no task; annotate a function, or remove the line",
		"A client package holds what callers of tasks use, and there is no task.",
		"Remove the line together with the last task.")
	clientTwice = kind("client-twice",
		"the client package %s is already that of %s, at %s; use another folder",
		"One folder holds the client package of one package.",
		"Choose another folder for one of the two.")
	clientUnexported = kind("client-unexported",
		"%s would get unexported identifiers, which nobody can use from the client package; set a prefix with as=%s",
		"The client package is another package, so only exported identifiers can be called.",
		"Set an exported prefix with `as=`.")
	clientType = kind("client-type",
		"%s of %s uses %s, which %s; move the type to %s or to a package of its own",
		"A client package may not import the package of the handlers, which imports it, nor a package that imports the client package itself.",
		"Move the type to a package that imports neither of the two, or into the client package's folder.")
	clientInternal = kind("client-internal",
		"%s of %s uses %s of an internal package that the client package %s may not import; move the type",
		"Go lets an internal package be imported only from below the folder that holds it.",
		"Move the type to a package that both may import, or the client folder below.")
	clientFolder = kind("client-folder",
		"the client folder %s %s",
		"The folder holds something that cannot be one package with the generated file.",
		"Choose another folder, or move what is in it.")
)
