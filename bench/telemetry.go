package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	smallage "github.com/smallage/smallage/runtime"
)

// telemetry is an observer and a middleware on OpenTelemetry's SDK, written as an application would write them: a counter
// of events, a histogram of the time that handlers took, and a span for each run, all of them sampled. The spans are
// thrown away at once, so that the price is Smallage's and the SDK's, not a collector's.
type telemetry struct {
	reader *sdkmetric.ManualReader
	spans  *sdktrace.TracerProvider
	events metric.Int64Counter
	took   metric.Float64Histogram
	tracer trace.Tracer
	ended  spanCount
}

func newTelemetry() (*telemetry, error) {
	t := &telemetry{reader: sdkmetric.NewManualReader()}
	t.spans = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithSyncer(&t.ended))
	t.tracer = t.spans.Tracer("smallage")
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(t.reader)).Meter("smallage")
	var err error
	if t.events, err = meter.Int64Counter("smallage.events"); err != nil {
		return nil, err
	}
	t.took, err = meter.Float64Histogram("smallage.handler.duration", metric.WithUnit("s"))
	return t, err
}

func (t *telemetry) Observe(e smallage.Event) {
	ctx := context.Background()
	which := metric.WithAttributes(
		attribute.String("event", string(e.Kind)), attribute.String("task", e.Job.Task), attribute.String("queue", e.Job.Queue))
	t.events.Add(ctx, 1, which)
	if e.Took > 0 {
		t.took.Record(ctx, e.Took.Seconds(), which)
	}
}

func (t *telemetry) trace(next smallage.Handler) smallage.Handler {
	return func(ctx context.Context, job smallage.JobInfo) ([]byte, error) {
		ctx, span := t.tracer.Start(ctx, job.Task, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attribute.String("messaging.system", "smallage"), attribute.String("messaging.destination.name", job.Queue),
			attribute.String("messaging.message.id", job.ID.String()), attribute.Int("smallage.attempt", job.Attempt)))
		defer span.End()
		value, err := next(ctx, job)
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		return value, err
	}
}

// verify refuses figures of a worker whose telemetry was not really made: a span and a "done" for each of its jobs.
func (t *telemetry) verify(ctx context.Context, jobs int64) error {
	var found metricdata.ResourceMetrics
	if err := t.reader.Collect(ctx, &found); err != nil {
		return err
	}
	var done int64
	for _, scope := range found.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, _ := m.Data.(metricdata.Sum[int64])
			for _, point := range sum.DataPoints {
				if kind, _ := point.Attributes.Value("event"); kind.AsString() == string(smallage.EventDone) {
					done += point.Value
				}
			}
		}
	}
	if spans := t.ended.Load(); spans != jobs || done != jobs {
		return fmt.Errorf("telemetry of %d jobs has %d spans and counts %d done", jobs, spans, done)
	}
	return t.spans.Shutdown(ctx)
}

// spanCount exports spans to nowhere.
type spanCount struct{ atomic.Int64 }

func (c *spanCount) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	c.Add(int64(len(spans)))
	return nil
}

func (c *spanCount) Shutdown(context.Context) error { return nil }
