package backends

// Given returns the decoded configuration or parameters, which are the value that a Definition's New function returned;
// the zero value for none. Kinds: Invalid for a value of another type, which only a mistake in the program can bring.
func Given[T any](value any) (T, error) {
	var none T
	switch value := value.(type) {
	case nil:
		return none, nil
	case *T:
		if value == nil {
			return none, nil
		}
		return *value, nil
	}
	return none, Errorf(Invalid, "the parameters or the configuration are a %T: they must be a %T", value, &none)
}
