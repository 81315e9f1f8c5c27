package gen

// What can be wrong with the signature of an annotated function.
var (
	genericFunction = kind("generic-function",
		"%s has type parameters, and a job's arguments need a type; write a function per type that calls it, and annotate those",
		"A generic function, or a method of a generic type, stands for many functions. A task is one.",
		"Annotate a function without type parameters. It may use instantiated types, such as Page[string].")
	specialFunction = kind("special-function",
		"func %s cannot be called by a worker; annotate a function with a name of its own",
		"`init`, `main` of package main and functions called `_` cannot be called.",
		"Give the task's body a function of its own.")
	noContext = kind("no-context",
		"the first parameter of %s is not a context.Context; write func %s(ctx context.Context%s) …",
		"A worker cancels a handler through its context: timeout, shutdown, a lost lease.",
		"Take a context.Context first.")
	noError = kind("no-error",
		"%s does not return an error last; write %s",
		"A handler that cannot fail cannot be retried. The results are `error`, or a value and an error.",
		"Return `error`, `([]byte, error)` or `(T, error)`.")
	manyResults = kind("many-results",
		"%s returns %d results; return error, or one value and an error",
		"A job has one value, and it travels as bytes.",
		"Return one value that encodes all parts itself.")
	unnamedParameter = kind("unnamed-parameter",
		"parameter %d of %s, of type %s, has no name, and arguments travel by name; name it",
		"Arguments travel as one JSON object keyed by parameter name. A name given later would change the wire format.",
		"Name the parameter. An unused one may be used as `_ = name`.")
	similarParameters = kind("similar-parameters",
		"the parameters %s and %s of %s differ only by case, and JSON does not tell them apart; rename one",
		"Decoding JSON ignores case, so one argument could arrive as the other.",
		"Rename one of them.")
	sameField = kind("same-field",
		"the parameters %s and %s of %s would both become the field %s; rename one",
		"Each parameter becomes an exported field of the argument struct. A name without an upper case gets an X before it.",
		"Rename one of them.")
	redeclared = kind("redeclared",
		"%s is declared already, at %s; rename one of the two",
		"A package has one function, and a type one method or field, of a name; a signature has one parameter, receiver or result of a name. Go refuses the second.",
		"Rename one of the two, or remove it.")
	invalidType = kind("invalid-type",
		"the type of %s of %s does not type-check (%s); correct it first",
		"The type of a parameter, a result or the receiver has an error, or is of a package that has one or is missing. Errors elsewhere in the package do not matter.",
		"Correct the type. `go vet` shows the same error.")
	generatedType = kind("generated-type",
		"%s of %s uses the generated type %s; use a type of your own",
		"The signature is what code is generated from, so it cannot use what is generated.",
		"Declare a type for it, or take the parameters one by one.")
	cgoType = kind("cgo-type",
		"%s of %s is of the C type %s, which generated code cannot name; use a Go type",
		"C types exist only in files that import \"C\".",
		"Take a Go type and convert inside of the function.")
	lossyType = kind("lossy-type",
		"parameter %s of %s cannot travel as JSON: %s",
		"Arguments travel as JSON. A value that JSON would refuse, or that would not arrive as it was sent, is refused here instead of at run time.",
		"Do what the message says; or give the type MarshalJSON and UnmarshalJSON (or MarshalText and UnmarshalText); or inject the parameter where the worker supplies it.")
	copiedLock = kind("copied-lock",
		"%s of %s would be copied with the lock %s; use a pointer",
		"A dependency, a receiver or a value that contains a lock (sync.Mutex, sync.WaitGroup, atomic types …) must not be copied; go vet says so, too.",
		"Use a pointer to it.")
	resultType = kind("result-type",
		"%s returns %s, %s",
		"Only bytes travel as a result value. A richer type brings its own encoding: MarshalBinary, and UnmarshalBinary on its pointer.",
		"Return []byte, or a type with both methods.")
)
