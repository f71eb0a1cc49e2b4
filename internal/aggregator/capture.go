// SPDX-License-Identifier: Apache-2.0

package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"
	"gopkg.in/yaml.v3"

	"github.com/tidemill/tidemill/bundle"
	"github.com/tidemill/tidemill/internal/report"
)

// maxCaptureFile bounds a _capture.yaml, in bytes.
const maxCaptureFile = 1 << 20

// runCaptures reads the captures of stacks that belong to the run as a whole:
// services/<worker>/_capture.yaml. What is malformed is logged and skipped.
func runCaptures(ctx context.Context, s bundle.Store, keys bundle.Keys, log zerolog.Logger) ([]report.Capture, error) {
	prefix := keys.Prefix() + "services/"
	var names []string
	for info, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list service logs of the run: %w", err)
		}
		worker, file, _ := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
		if worker != "" && file == "_capture.yaml" {
			names = append(names, info.Key)
		}
	}
	slices.Sort(names)
	var out []report.Capture
	for _, key := range names {
		body, err := bundle.ReadObject(ctx, s, key, maxCaptureFile)
		if errors.Is(err, bundle.ErrNotFound) {
			continue // gone since it was listed
		}
		if err != nil && noAnswer(ctx, err) {
			return nil, err
		}
		var capture report.Capture
		var problems []string
		if err == nil {
			capture, problems, err = parseCapture(body)
		}
		for _, p := range problems {
			log.Warn().Str("run_id", keys.Run).Str("key", key).Msg("service left out of the captured logs: " + p)
		}
		if err != nil {
			log.Warn().Err(err).Str("run_id", keys.Run).Str("key", key).Msg("capture of service logs skipped")
			continue
		}
		if len(capture.Services) > 0 {
			out = append(out, capture)
		}
	}
	return out, nil
}

// parseCapture reads a _capture.yaml: {tail, capture_reason, services: {name: {bytes}}}.
// Services without a whole number of bytes are left out and told.
func parseCapture(body []byte) (c report.Capture, problems []string, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(body, &doc); err != nil {
		return c, nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return c, nil, errors.New("want a mapping")
	}
	c = report.Capture{Source: report.FromRun, Services: map[string]int64{}}
	top := doc.Content[0]
	if reason := field(top, "capture_reason"); reason != nil && reason.Kind == yaml.ScalarNode && reason.ShortTag() == "!!str" {
		c.CaptureReason = &reason.Value
	}
	services := field(top, "services")
	switch {
	case services == nil:
		return c, nil, nil
	case services.Kind != yaml.MappingNode:
		return c, nil, errors.New("services: want a mapping")
	}
	for i := 0; i+1 < len(services.Content); i += 2 {
		name, body := services.Content[i], services.Content[i+1]
		n, ok := byteCount(body)
		if name.Kind != yaml.ScalarNode || !ok {
			problems = append(problems, fmt.Sprintf("%.80q: want {bytes: whole number}", name.Value))
			continue
		}
		c.Services[name.Value] = n
	}
	return c, problems, nil
}

func byteCount(service *yaml.Node) (int64, bool) {
	if service.Kind != yaml.MappingNode {
		return 0, false
	}
	n := field(service, "bytes")
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	return v, err == nil && v >= 0
}

// field returns a value of a mapping.
func field(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}
