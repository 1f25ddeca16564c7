module github.com/quorate/quorate/bench/peers

go 1.26.0

require (
	github.com/anthdm/hollywood v1.0.5
	github.com/asynkron/protoactor-go v0.0.0-20240822202345-3c0e61ca19c9
	github.com/hashicorp/memberlist v0.7.0
	github.com/quorate/quorate/bench v0.0.0
	github.com/quorate/quorate/cluster v0.0.0
	github.com/quorate/quorate/gossip v0.0.0
	github.com/quorate/quorate/internal/patience v0.0.0
	github.com/quorate/quorate/membership v0.0.0
	github.com/quorate/quorate/sharding v0.0.0
	github.com/stretchr/testify v1.12.1
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/DataDog/gostackparse v0.7.0 // indirect
	github.com/Workiva/go-datastructures v1.1.3 // indirect
	github.com/asynkron/gofun v0.0.0-20220329210725-34fed760f4c2 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/emirpasic/gods v1.18.1 // indirect
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/go-viper/mapstructure/v2 v2.4.0 // indirect
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/google/btree v1.1.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-immutable-radix v1.3.1 // indirect
	github.com/hashicorp/go-metrics v0.7.0 // indirect
	github.com/hashicorp/go-msgpack/v2 v2.1.5 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/hashicorp/go-sockaddr v1.0.7 // indirect
	github.com/hashicorp/golang-lru v1.0.2 // indirect
	github.com/klauspost/cpuid/v2 v2.0.9 // indirect
	github.com/knadh/koanf/maps v0.1.2 // indirect
	github.com/knadh/koanf/providers/confmap v1.0.1 // indirect
	github.com/knadh/koanf/providers/env/v2 v2.0.2 // indirect
	github.com/knadh/koanf/v2 v2.4.1 // indirect
	github.com/lithammer/shortuuid/v4 v4.0.0 // indirect
	github.com/lmittmann/tint v1.0.3 // indirect
	github.com/miekg/dns v1.1.73 // indirect
	github.com/mitchellh/copystructure v1.2.0 // indirect
	github.com/mitchellh/reflectwalk v1.0.2 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/orcaman/concurrent-map v1.0.0 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
	github.com/prometheus/client_golang v1.25.0 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/otlptranslator v1.0.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
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
	github.com/quorate/quorate/machine v0.0.0 // indirect
	github.com/quorate/quorate/management v0.0.0 // indirect
	github.com/quorate/quorate/plugins v0.0.0 // indirect
	github.com/quorate/quorate/rpc v0.0.0 // indirect
	github.com/quorate/quorate/sharding/reminder v0.0.0 // indirect
	github.com/quorate/quorate/sharding/state v0.0.0 // indirect
	github.com/quorate/quorate/transport v0.0.0 // indirect
	github.com/sean-/seed v0.0.0-20170313163322-e2103e2c3529 // indirect
	github.com/twmb/murmur3 v1.1.8 // indirect
	github.com/zeebo/errs v1.2.2 // indirect
	github.com/zeebo/xxh3 v1.0.2 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/exporters/prometheus v0.69.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/sdk v1.47.0 // indirect
	go.opentelemetry.io/otel/sdk/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/exp v0.0.0-20231226003508-02704c960a9b // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c // indirect
	storj.io/drpc v0.0.33 // indirect
)

replace (
	github.com/quorate/quorate/allocation => ../../allocation
	github.com/quorate/quorate/bench => ../
	github.com/quorate/quorate/client => ../../client
	github.com/quorate/quorate/cluster => ../../cluster
	github.com/quorate/quorate/cluster/prometheus => ../../cluster/prometheus
	github.com/quorate/quorate/config => ../../config
	github.com/quorate/quorate/config/field => ../../config/field
	github.com/quorate/quorate/ddata => ../../ddata
	github.com/quorate/quorate/ddata/crdt => ../../ddata/crdt
	github.com/quorate/quorate/ddata/services => ../../ddata/services
	github.com/quorate/quorate/discovery => ../../discovery
	github.com/quorate/quorate/downing => ../../downing
	github.com/quorate/quorate/fd => ../../fd
	github.com/quorate/quorate/gateway => ../../gateway
	github.com/quorate/quorate/gossip => ../../gossip
	github.com/quorate/quorate/internal/patience => ../../internal/patience
	github.com/quorate/quorate/machine => ../../machine
	github.com/quorate/quorate/management => ../../management
	github.com/quorate/quorate/membership => ../../membership
	github.com/quorate/quorate/plugins => ../../plugins
	github.com/quorate/quorate/rpc => ../../rpc
	github.com/quorate/quorate/sharding => ../../sharding
	github.com/quorate/quorate/sharding/reminder => ../../sharding/reminder
	github.com/quorate/quorate/sharding/state => ../../sharding/state
	github.com/quorate/quorate/sharding/state/postgres => ../../sharding/state/postgres
	github.com/quorate/quorate/simulation => ../../simulation
	github.com/quorate/quorate/transport => ../../transport
)
