// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package quorate;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.protobuf.ByteString;
import com.google.protobuf.Empty;
import com.google.protobuf.MessageLite;
import io.grpc.BindableService;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerInterceptors;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.nio.NioEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.handler.ssl.ClientAuth;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContextBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.ByteArrayInputStream;
import java.net.UnixDomainSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import quorate.plugin.v1.PluginGrpc;
import quorate.plugin.v1.PluginOuterClass.ConfigureRequest;
import quorate.plugin.v1.PluginOuterClass.ConfigureResponse;
import quorate.plugin.v1.PluginOuterClass.DescribeRequest;
import quorate.plugin.v1.PluginOuterClass.DescribeResponse;
import quorate.plugin.v1.PluginOuterClass.Policy;
import quorate.plugin.v1.PluginOuterClass.SettingError;

/** What every plugin in Java does, whatever it decides: see docs/plugins.md, "The handshake". */
final class Plugin extends PluginGrpc.PluginImplBase {
  private static final String COOKIE = "5d0f5a5b3c5e4d4c9f3a7c1be2a6b8e1";
  private static final int CONTRACT = 1;
  private static final int REQUEST_BYTES_MAX = 16 << 20;
  private static final int ANSWER_BYTES_MAX = 4 << 20;
  private static final int TEXT_BYTES_MAX = 1024;
  private static final int CALLS_MAX = 16;

  /** A service of the contract that takes settings. */
  interface Strategy extends BindableService {
    void configure(Settings settings);

    /** A JSON Schema of the settings, by which a node checks them before; empty for none. */
    default String schema() { return ""; }
  }

  /** The strategy has no answer now. The text says why. */
  static final class Undecided extends RuntimeException {
    Undecided(String why) { super(why); }
  }

  /** The settings; a key that nobody takes is a fault. */
  static final class Settings {
    private final List<SettingError> faults = new ArrayList<>();
    private JsonObject rest = new JsonObject();

    private Settings(String json) {
      try {
        rest = JsonParser.parseString(json.isEmpty() ? "{}" : json).getAsJsonObject();
      } catch (JsonParseException | IllegalStateException err) {
        wrong("", "no JSON object");
      }
    }

    String text(String key, String otherwise) {
      JsonElement value = rest.remove(key);
      if (value == null) return otherwise;
      if (value.isJsonPrimitive() && value.getAsJsonPrimitive().isString()) return value.getAsString();
      wrong(key, value + " is no text");
      return otherwise;
    }

    void wrong(String key, String reason) {
      faults.add(SettingError.newBuilder().setKey(cut(key, 256)).setReason(line(reason)).build());
    }

    private List<SettingError> close() {
      for (String key : rest.keySet()) wrong(key, "there is no such setting");
      return faults.subList(0, Math.min(faults.size(), 100));
    }
  }

  /** Answers a call; exceptions become the status that the contract has for them. */
  static <A extends MessageLite> void answer(StreamObserver<A> observer, Supplier<A> decide) {
    try {
      A answer = decide.get();
      if (answer.getSerializedSize() > ANSWER_BYTES_MAX) {
        throw Status.RESOURCE_EXHAUSTED.withDescription("an answer of " + answer.getSerializedSize() + " bytes").asRuntimeException();
      }
      observer.onNext(answer);
      observer.onCompleted();
    } catch (Undecided why) {
      observer.onError(Status.UNKNOWN.withDescription(line(why.getMessage())).asRuntimeException());
    } catch (io.grpc.StatusRuntimeException status) {
      observer.onError(status);
    } catch (RuntimeException fault) {
      observer.onError(Status.INTERNAL.withDescription(line(fault.toString())).asRuntimeException());
    }
  }

  /** Makes one line of a text, of as many bytes as a reason may have. */
  static String line(String text) { return cut(text.replaceAll("\\p{Cntrl}", " "), TEXT_BYTES_MAX); }

  private static String cut(String text, int bytes) {
    while (text.getBytes(StandardCharsets.UTF_8).length > bytes) {
      text = text.substring(0, text.offsetByCodePoints(text.length(), -1));
    }
    return text;
  }

  private final ConfigureResponse about;
  private final Strategy strategy;
  private final Semaphore calls = new Semaphore(CALLS_MAX);
  private volatile boolean configured;
  private Server server;

  private Plugin(ConfigureResponse about, Strategy strategy) {
    this.about = about;
    this.strategy = strategy;
  }

  /** Shakes hands with the node and answers its calls until the plugin is to end. */
  static void serve(String name, String version, Policy policy, Strategy strategy) throws Exception {
    if (!COOKIE.equals(System.getenv("QUORATE_PLUGIN"))) {
      System.err.println(name + " " + version + " is a plugin of Quorate: a node starts it, named in the file of the cluster.");
      System.exit(2);
    }
    new Plugin(ConfigureResponse.newBuilder().setName(name).setVersion(version).setPolicy(policy).build(), strategy).run();
  }

  private void run() throws Exception {
    sun.misc.Signal.handle(new sun.misc.Signal("INT"), sun.misc.SignalHandler.SIG_IGN);
    KeyPair key = Certificate.key();
    X509Certificate own = Certificate.of(key);
    HealthStatusManager health = new HealthStatusManager();
    health.setStatus("plugin", ServingStatus.SERVING);
    String path = System.getenv("PLUGIN_UNIX_SOCKET_DIR") + "/plugin.sock";
    NioEventLoopGroup loops = new NioEventLoopGroup(1);
    server = NettyServerBuilder.forAddress(UnixDomainSocketAddress.of(path))
        .channelType(NioServerDomainSocketChannel.class).bossEventLoopGroup(loops).workerEventLoopGroup(loops)
        .sslContext(tls(key, own)).maxInboundMessageSize(REQUEST_BYTES_MAX)
        .addService(this).addService(health.getHealthService()).addService(controller())
        .addService(ServerInterceptors.intercept(strategy, bounded()))
        .build().start();
    Runtime.getRuntime().addShutdownHook(new Thread(this::finish)); // Of SIGTERM.
    System.out.println(String.join("|", "1", String.valueOf(CONTRACT), "unix", path, "grpc",
        Base64.getEncoder().withoutPadding().encodeToString(own.getEncoded())));
    System.out.flush();
    long node = Long.parseLong(System.getenv("QUORATE_PLUGIN_HOST_PID"));
    while (!server.awaitTermination(200, TimeUnit.MILLISECONDS)) {
      if (ProcessHandle.current().parent().map(ProcessHandle::pid).orElse(0L) != node) break; // The node has died.
    }
    System.exit(0);
  }

  /** Lets running calls end, for a second. */
  private void finish() {
    try {
      if (!server.shutdown().awaitTermination(1, TimeUnit.SECONDS)) server.shutdownNow();
    } catch (InterruptedException err) {
      server.shutdownNow();
    }
  }

  /** Each side trusts the certificate of the other and no other one. */
  private static SslContext tls(KeyPair key, X509Certificate own) throws Exception {
    byte[] text = System.getenv("PLUGIN_CLIENT_CERT").getBytes(StandardCharsets.US_ASCII);
    X509Certificate node = (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(text));
    return GrpcSslContexts.configure(SslContextBuilder.forServer(key.getPrivate(), own)).trustManager(node).clientAuth(ClientAuth.REQUIRE).build();
  }

  /** The call by which a node ends the plugin. */
  private ServerServiceDefinition controller() {
    MethodDescriptor<Empty, Empty> method = MethodDescriptor.<Empty, Empty>newBuilder()
        .setType(MethodDescriptor.MethodType.UNARY).setFullMethodName("plugin.GRPCController/Shutdown")
        .setRequestMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
        .setResponseMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance())).build();
    return ServerServiceDefinition.builder("plugin.GRPCController").addMethod(method, ServerCalls.asyncUnaryCall((request, observer) -> {
      observer.onNext(Empty.getDefaultInstance());
      observer.onCompleted();
      server.shutdown();
    })).build();
  }

  @Override public synchronized void describe(DescribeRequest request, StreamObserver<DescribeResponse> observer) {
    answer(observer, () -> {
      DescribeResponse.Builder said = DescribeResponse.newBuilder().setName(about.getName()).setVersion(about.getVersion())
          .setPolicy(about.getPolicy()).setSettingsSchema(ByteString.copyFromUtf8(strategy.schema()));
      if (configured) said.setClass_(about.getClass_());
      return said.build();
    });
  }

  @Override public synchronized void configure(ConfigureRequest request, StreamObserver<ConfigureResponse> observer) {
    answer(observer, () -> {
      if (configured) throw Status.FAILED_PRECONDITION.withDescription("the plugin is configured").asRuntimeException();
      Settings settings = new Settings(request.getSettings().toStringUtf8());
      strategy.configure(settings);
      List<SettingError> faults = settings.close();
      if (!faults.isEmpty()) return ConfigureResponse.newBuilder().addAllErrors(faults).build();
      configured = true;
      return about;
    });
  }

  /** Refuses calls before the plugin is configured, and more than there may be at a time. */
  private ServerInterceptor bounded() {
    return new ServerInterceptor() {
      @Override public <Q, A> ServerCall.Listener<Q> interceptCall(ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
        Status refused = !configured ? Status.FAILED_PRECONDITION.withDescription("the plugin is not configured")
            : !calls.tryAcquire() ? Status.RESOURCE_EXHAUSTED.withDescription(CALLS_MAX + " calls are in hand") : null;
        if (refused != null) {
          call.close(refused, new Metadata());
          return new ServerCall.Listener<>() { };
        }
        ServerCall.Listener<Q> listener = next.startCall(new SimpleForwardingServerCall<>(call) { }, headers);
        return new io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener<>(listener) {
          @Override public void onComplete() { calls.release(); super.onComplete(); }
          @Override public void onCancel() { calls.release(); super.onCancel(); }
        };
      }
    };
  }
}
