module github.com/quorate/quorate/examples/settings

go 1.26.0

require (
	github.com/knadh/koanf/parsers/yaml v1.1.1
	github.com/knadh/koanf/providers/basicflag v1.0.0
	github.com/knadh/koanf/providers/confmap v1.0.1
	github.com/knadh/koanf/providers/env/v2 v2.0.2
	github.com/knadh/koanf/providers/file v1.2.1
	github.com/knadh/koanf/providers/fs v1.0.1
	github.com/knadh/koanf/providers/posflag v1.0.2
	github.com/knadh/koanf/providers/rawbytes v1.0.0
	github.com/knadh/koanf/providers/s3 v1.0.0
	github.com/knadh/koanf/providers/structs v1.0.0
	github.com/knadh/koanf/v2 v2.4.1
	github.com/quorate/quorate/cluster v0.0.0
	github.com/spf13/pflag v1.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/fatih/structs v1.1.0 // indirect
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-viper/mapstructure/v2 v2.4.0 // indirect
	github.com/knadh/koanf/maps v0.1.2 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/quorate/quorate/allocation v0.0.0 // indirect
	github.com/quorate/quorate/client v0.0.0 // indirect
	github.com/quorate/quorate/config v0.0.0 // indirect
	github.com/quorate/quorate/config/field v0.0.0 // indirect
	github.com/quorate/quorate/ddata v0.0.0 // indirect
	github.com/quorate/quorate/ddata/crdt v0.0.0 // indirect
	github.com/quorate/quorate/ddata/services v0.0.0 // indirect
	github.com/quorate/quorate/discovery v0.0.0 // indirect
	github.com/quorate/quorate/downing v0.0.0 // indirect
	github.com/quorate/quorate/fd v0.0.0 // indirect
	github.com/quorate/quorate/gateway v0.0.0 // indirect
	github.com/quorate/quorate/gossip v0.0.0 // indirect
	github.com/quorate/quorate/machine v0.0.0 // indirect
	github.com/quorate/quorate/management v0.0.0 // indirect
	github.com/quorate/quorate/membership v0.0.0 // indirect
	github.com/quorate/quorate/plugins v0.0.0 // indirect
	github.com/quorate/quorate/rpc v0.0.0 // indirect
	github.com/quorate/quorate/sharding v0.0.0 // indirect
	github.com/quorate/quorate/sharding/reminder v0.0.0 // indirect
	github.com/quorate/quorate/sharding/state v0.0.0 // indirect
	github.com/quorate/quorate/transport v0.0.0 // indirect
	github.com/rhnvrm/simples3 v0.8.4 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/quorate/quorate/allocation => ../../allocation

replace github.com/quorate/quorate/client => ../../client

replace github.com/quorate/quorate/cluster => ../../cluster

replace github.com/quorate/quorate/config => ../../config

replace github.com/quorate/quorate/config/field => ../../config/field

replace github.com/quorate/quorate/ddata => ../../ddata

replace github.com/quorate/quorate/ddata/crdt => ../../ddata/crdt

replace github.com/quorate/quorate/ddata/services => ../../ddata/services

replace github.com/quorate/quorate/discovery => ../../discovery

replace github.com/quorate/quorate/downing => ../../downing

replace github.com/quorate/quorate/fd => ../../fd

replace github.com/quorate/quorate/gateway => ../../gateway

replace github.com/quorate/quorate/gossip => ../../gossip

replace github.com/quorate/quorate/internal/patience => ../../internal/patience

replace github.com/quorate/quorate/machine => ../../machine

replace github.com/quorate/quorate/management => ../../management

replace github.com/quorate/quorate/membership => ../../membership

replace github.com/quorate/quorate/plugins => ../../plugins

replace github.com/quorate/quorate/rpc => ../../rpc

replace github.com/quorate/quorate/sharding => ../../sharding

replace github.com/quorate/quorate/sharding/reminder => ../../sharding/reminder

replace github.com/quorate/quorate/sharding/state => ../../sharding/state

replace github.com/quorate/quorate/simulation => ../../simulation

replace github.com/quorate/quorate/transport => ../../transport
