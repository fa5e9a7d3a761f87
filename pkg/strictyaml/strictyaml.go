package strictyaml

import (
	"bytes"
	"errors"
	"io"

	documents "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// Unmarshal decodes a text of one YAML document by the value's JSON tags. It refuses unknown keys, keys that occur
// twice, and a second document.
func Unmarshal(text []byte, value any) error {
	if err := yaml.UnmarshalStrict(text, value); err != nil {
		return err
	}
	reader := documents.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		var document any
		switch err := reader.Decode(&document); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n > 0 && document != nil: // Without content, as after a "---" at the end, it sets nothing.
			return errors.New(`a second document begins after "---", and only the first would count: write one document`)
		}
	}
}
