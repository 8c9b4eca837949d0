// What the official JavaScript client of 0.3 sees of the server, over every binding.
//
// The capitals in the comments are the requirements that a test is about, as docs/interop.md names
// them.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';

import {
  A2AClient,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  PushNotificationNotSupportedError,
  RestTransportFactory,
  TaskNotCancelableError,
  TaskNotFoundError,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';

const URL = process.env.A2AD_INTEROP_URL;
const BINDINGS = process.env.A2AD_INTEROP_BINDINGS.split(',');
const DEADLINE = 30_000;
const NOBODY = randomUUID();

const TRANSPORTS = {
  JSONRPC: JsonRpcTransportFactory,
  'HTTP+JSON': RestTransportFactory,
  GRPC: GrpcTransportFactory,
};

// The served agent, as a user of the client sees it over one binding.
class Agent {
  static async over(binding, capabilities) {
    const agent = new Agent();
    agent.card = await new DefaultAgentCardResolver().resolve(URL);
    Object.assign(agent.card.capabilities, capabilities);
    const factory = new ClientFactory({
      // Nothing to fall back to: a binding that the card lacks is an error.
      transports: [new TRANSPORTS[binding]()],
      preferredTransports: [binding],
    });
    agent.client = await factory.createFromAgentCard(agent.card);
    return agent;
  }

  // message/send. Returns the task.
  async send(text, options) {
    const task = await this.client.sendMessage(request(text, options));
    assert.equal(task.kind, 'task');
    return task;
  }

  // message/stream. Returns the frames, as they come.
  stream(text, options) {
    return this.client.sendMessageStream(request(text, options));
  }

  // tasks/resubscribe. Returns the frames, as they come.
  subscribe(id) {
    return this.client.resubscribeTask({ id });
  }

  get(id, options) {
    return this.client.getTask({ id, ...options });
  }

  cancel(id) {
    return this.client.cancelTask({ id });
  }
}

// A message, with other parts after its text, and how it is to be sent.
function request(
  text,
  { taskId, contextId, messageId = randomUUID(), parts = [], ...configuration } = {},
) {
  const all = text === undefined ? [] : [{ kind: 'text', text }, ...parts];
  const message = { kind: 'message', messageId, taskId, contextId, role: 'user', parts: all };
  return { message, configuration };
}

const words = (thing) => (thing?.parts ?? []).map((part) => part.text).join('\n');
const ids = (messages) => messages.map((message) => message.messageId);

// A frame as a list that is easy to compare. Every frame has to be of the task.
function shown(frame, task) {
  if (frame.kind === 'task') {
    assert.deepEqual([frame.id, frame.contextId], [task.id, task.contextId]);
    return ['task', frame.status.state];
  }
  assert.deepEqual([frame.taskId, frame.contextId], [task.id, task.contextId]);
  if (frame.kind === 'status-update') {
    assert.equal(typeof frame.final, 'boolean');
    const flags = frame.final ? 'final' : '';
    return ['status', frame.status.state, words(frame.status.message), flags];
  }
  assert.equal(frame.kind, 'artifact-update');
  const flags = [frame.append && 'append', frame.lastChunk && 'last'].filter(Boolean).join(' ');
  return ['artifact', frame.artifact.artifactId, words(frame.artifact), flags];
}

// The next frame of a stream that is not to end yet.
async function next(frames) {
  const { value, done } = await frames.next();
  assert.ok(!done, 'the stream ended too early');
  return value;
}

// The task that a stream opens with.
async function opening(frames) {
  const task = await next(frames);
  assert.equal(task.kind, 'task');
  return task;
}

// What is left of a stream, up to its end.
async function rest(frames, task) {
  const seen = [];
  for await (const frame of frames) seen.push(shown(frame, task));
  return seen;
}

// Kinds of errors that the client has no class for, at least not over every binding.
const INVALID_PARAMS = { name: 'InvalidParamsError', code: -32602 };
const NO_PUSH = { name: 'PushNotificationNotSupportedError', code: -32003 };

// Whether a thrown error is of a class, or of such a kind: then it tells the code over JSON-RPC and
// HTTP+JSON, and over gRPC the server's text, which begins with the name.
function isOf(kind, thrown) {
  if (!kind.code) return thrown instanceof kind;
  const code = thrown.errorResponse?.error.code ?? /\(Code: (-\d+)\)/.exec(thrown.message)?.[1];
  return Number(code) === kind.code || thrown.cause?.details?.startsWith(`${kind.name}: `);
}

// A call, or a stream, that fails so. A stream has to fail before its first frame.
async function refused(kind, call) {
  await assert.rejects(
    async () => {
      const answer = await call();
      if (!answer?.[Symbol.asyncIterator]) return;
      for await (const frame of answer) assert.fail(`a frame came: ${JSON.stringify(frame)}`);
    },
    (thrown) => {
      // What comes in a stream over JSON-RPC, the client wraps into an error of no kind.
      const wrapped = thrown.message.startsWith('SSE event contained an error');
      const it = wrapped ? thrown.cause : thrown;
      assert.ok(isOf(kind, it), `${it?.name} instead of ${kind.name}: ${thrown}`);
      return true;
    },
  );
}

for (const binding of BINDINGS) {
  describe(binding, { concurrency: false, timeout: 10 * DEADLINE }, () => {
    const scenario = (name, run) =>
      test(name, { timeout: DEADLINE }, async () => run(await Agent.over(binding)));

    // Over the bindings that have the schema `a2a.v1`, the client forgets `append`, the names of
    // files, and the metadata of parts.
    const all = binding === 'JSONRPC';
    const file = (file, metadata) => {
      const { name, ...others } = file;
      return all ? { kind: 'file', file, ...metadata } : { kind: 'file', file: others };
    };

    // V03-21, V03-22, V03-23
    scenario('the card lists the bindings that the server has', async ({ card }) => {
      assert.equal(card.protocolVersion, '0.3.0');
      const addresses = new Map([[card.preferredTransport, card.url]]);
      for (const { transport, url } of card.additionalInterfaces) {
        assert.equal(addresses.get(transport) ?? url, url);
        addresses.set(transport, url);
      }
      assert.deepEqual([...addresses.keys()].sort(), [...BINDINGS].sort());
      assert.equal(card.name, 'Interop');
      assert.deepEqual(card.skills.map((skill) => skill.id), ['interop']);
      assert.equal(card.capabilities.streaming, true);
      assert.equal(card.capabilities.pushNotifications, false);
      assert.ok(!card.supportsAuthenticatedExtendedCard);
      const older = new DefaultAgentCardResolver({ path: '.well-known/agent.json' });
      assert.deepEqual(await older.resolve(URL), card);
    });

    // SEND-01, SEND-02, SEND-05, CTX-01, CTX-07, V03-02 to V03-05, V03-14, V03-16
    scenario('send answers with the finished task', async (agent) => {
      const messageId = randomUUID();
      const task = await agent.send('parts please', { messageId });
      assert.ok(task.id && task.contextId);
      assert.equal(task.status.state, 'completed');
      assert.ok(Date.parse(task.status.timestamp) > 0);
      assert.equal(words(task.status.message), `That was ${messageId}`);
      assert.equal(task.status.message.role, 'agent');
      assert.equal(task.artifacts.length, 1);
      const [artifact] = task.artifacts;
      assert.deepEqual([artifact.artifactId, artifact.name], ['parts', 'all kinds']);
      assert.deepEqual(artifact.parts, [
        { kind: 'text', text: 'Grüße, parts please' },
        file({ bytes: 'AAH+/w==', mimeType: 'application/octet-stream', name: 'bytes.bin' }),
        file({ uri: 'https://example.com/a.png', mimeType: 'image/png' }),
        {
          kind: 'data',
          // Over gRPC, the client makes a number of null.
          data: {
            pages: 3,
            price: 1.5,
            tags: ['a', 'b'],
            nested: { none: binding === 'GRPC' ? 0 : null, yes: true },
          },
        },
      ]);
      assert.equal(task.history[0].messageId, messageId);
      assert.equal(task.history[0].role, 'user');
      assert.equal(words(task.history[0]), 'parts please');
    });

    // SEND-05, V03-05, V03-14, V03-16
    scenario('parts of every kind arrive as they were sent', async (agent) => {
      const metadata = all ? { metadata: { page: 1 } } : {};
      const sent = [
        file(
          { bytes: 'AAH+/w==', mimeType: 'application/octet-stream', name: 'bytes.bin' },
          metadata,
        ),
        file({ uri: 'https://example.com/a.png', mimeType: 'image/png', name: 'a.png' }, metadata),
        {
          kind: 'data',
          data: {
            pages: 3,
            price: 1.5,
            tags: ['a', 'b'],
            // Over gRPC, the client fails to send null.
            nested: { ...(binding === 'GRPC' ? {} : { none: null }), yes: true },
          },
          ...metadata,
        },
      ];
      const task = await agent.send('short', { parts: sent });
      assert.equal(task.status.state, 'completed');
      const kept = await agent.get(task.id);
      for (const message of [task.history[0], kept.history[0]]) {
        assert.deepEqual(message.parts, [{ kind: 'text', text: 'short' }, ...sent]);
      }
    });

    // SEND-16
    for (const [text, end, said] of [
      ['fail', 'failed', 'It broke'],
      ['reject', 'rejected', 'Not for me'],
      ['something no rule fits', 'rejected'],
    ]) {
      scenario(`a failure of the agent is a task and no error: ${text}`, async (agent) => {
        const task = await agent.send(text);
        assert.equal(task.status.state, end);
        if (said) assert.equal(words(task.status.message), said);
      });
    }

    // SEND-03, CANCEL-01, V03-09
    scenario('send can answer at once', async (agent) => {
      const task = await agent.send('hold on', { blocking: false });
      assert.ok(['submitted', 'working'].includes(task.status.state));
      assert.equal((await agent.cancel(task.id)).status.state, 'canceled');
    });

    // SEND-17
    scenario('a message sent again makes no second task', async (agent) => {
      const messageId = randomUUID();
      const first = await agent.send('short', { messageId });
      const again = await agent.send('short', { messageId });
      const other = await agent.send('short');
      assert.equal(again.id, first.id);
      assert.notEqual(other.id, first.id);
    });

    // STREAM-01, STREAM-03, STREAM-04, STREAM-06, STREAM-07, ART-01, ART-02, ART-04, V03-03, V03-06
    scenario('a stream opens with the task and tells everything in order', async (agent) => {
      const frames = agent.stream('stream please');
      const task = await opening(frames);
      assert.equal(task.status.state, 'submitted');
      assert.equal(words(task.history[0]), 'stream please');
      assert.deepEqual(await rest(frames, task), [
        ['status', 'working', '', ''],
        ['status', 'working', 'Working on it', ''],
        ['artifact', 'numbers', 'one', ''],
        ['artifact', 'numbers', 'two', all ? 'append' : ''],
        ['artifact', 'numbers', 'three', all ? 'append last' : 'last'],
        ['status', 'completed', 'Counted', 'final'],
      ]);
      const kept = await agent.get(task.id);
      assert.deepEqual(kept.artifacts.map(words), ['one\ntwo\nthree']);
    });

    // GET-01, HIST-01, HIST-02, HIST-03, V03-10
    scenario('get returns the task with as much history as wanted', async (agent) => {
      const { id, contextId } = await agent.send('ask me');
      const sent = await agent.send('blue', { taskId: id, contextId });
      assert.deepEqual(await agent.get(id), sent);
      const whole = ids(sent.history);
      assert.ok(whole.length >= 2);
      // Where the number has no presence, 0 says nothing.
      const none = await agent.get(id, { historyLength: 0 });
      assert.deepEqual(ids(none.history ?? []), binding === 'JSONRPC' ? [] : whole);
      assert.deepEqual(none.artifacts, sent.artifacts);
      const one = await agent.get(id, { historyLength: 1 });
      assert.deepEqual(ids(one.history), whole.slice(-1));
    });

    // CANCEL-01, CANCEL-02, CANCEL-04, STREAM-03, V03-06
    scenario('cancel ends the task and its stream', async (agent) => {
      const frames = agent.stream('hold on');
      const task = await opening(frames);
      assert.deepEqual(shown(await next(frames), task), ['status', 'working', '', '']);
      assert.deepEqual(shown(await next(frames), task), ['status', 'working', 'Holding', '']);
      const canceled = await agent.cancel(task.id);
      assert.deepEqual([canceled.id, canceled.status.state], [task.id, 'canceled']);
      const end = await rest(frames, task);
      assert.deepEqual(
        end.map(([what, state, , flags]) => [what, state, flags]),
        [['status', 'canceled', 'final']],
      );
      await refused(TaskNotCancelableError, () => agent.cancel(task.id));
    });

    // SUB-01, SUB-04, STREAM-05, V03-20
    scenario('a subscriber joins a running task', async (agent) => {
      const sender = agent.stream('hold on');
      const task = await opening(sender);
      assert.deepEqual(shown(await next(sender), task), ['status', 'working', '', '']);
      assert.deepEqual(shown(await next(sender), task), ['status', 'working', 'Holding', '']);
      const frames = agent.subscribe(task.id);
      assert.deepEqual(shown(await next(frames), task), ['task', 'working']);
      await agent.cancel(task.id);
      const ends = [await rest(sender, task), await rest(frames, task)];
      assert.deepEqual(ends[0], ends[1]);
      assert.deepEqual(
        ends[0].map(([what, state, , flags]) => [what, state, flags]),
        [['status', 'canceled', 'final']],
      );
    });

    // SUB-01, SUB-03, SUB-04, STREAM-05, CTX-03, CTX-11, V03-06
    scenario('two subscribers see the same events', async (agent) => {
      const task = await agent.send('ask me');
      assert.equal(task.status.state, 'input-required');
      const [first, second] = [agent.subscribe(task.id), agent.subscribe(task.id)];
      assert.deepEqual(shown(await next(first), task), ['task', 'input-required']);
      assert.deepEqual(shown(await next(second), task), ['task', 'input-required']);
      // Without the context: the task has it.
      const answered = await agent.send('blue', { taskId: task.id });
      assert.deepEqual([answered.id, answered.contextId], [task.id, task.contextId]);
      const seen = await rest(first, task);
      assert.deepEqual(seen, await rest(second, task));
      assert.deepEqual(seen, [
        ['status', 'working', '', ''],
        ['status', 'working', 'Mixing blue', ''],
        ['artifact', 'paint', 'A bucket of blue', 'last'],
        ['status', 'completed', 'It is blue', 'final'],
      ]);
    });

    // CTX-11, SEND-15, STREAM-02, STREAM-08, V03-06
    scenario('a task asks and goes on with the answer', async (agent) => {
      const task = await agent.send('ask me');
      const same = { taskId: task.id, contextId: task.contextId };
      assert.equal(task.status.state, 'input-required');
      assert.equal(words(task.status.message), 'Which colour?');

      // The stream of a message ends when the agent asks again.
      const frames = agent.stream('red', same);
      assert.equal(shown(await next(frames), task)[0], 'task');
      const end = (await rest(frames, task)).at(-1);
      assert.deepEqual(end, ['status', 'input-required', 'Which colour?', 'final']);

      const done = await agent.send('blue', same);
      assert.deepEqual([done.id, done.contextId], [task.id, task.contextId]);
      assert.equal(done.status.state, 'completed');
      assert.equal(words(done.status.message), 'It is blue');
      const said = done.history.filter((message) => message.role === 'user');
      assert.deepEqual(said.map(words), ['ask me', 'red', 'blue']);
    });

    // SEND-14, STREAM-01
    scenario('an agent can answer with a message', async (agent) => {
      const streamed = [];
      for await (const frame of agent.stream('message me')) streamed.push(frame);
      assert.deepEqual(streamed.map((frame) => frame.kind), ['message']);
      const sent = await agent.client.sendMessage(request('message me'));
      for (const message of [sent, streamed[0]]) {
        assert.equal(message.kind, 'message');
        assert.equal(message.role, 'agent');
        assert.equal(words(message), 'Just this: message me');
        assert.ok(message.messageId && message.contextId);
        const task = await agent.get(message.taskId);
        assert.equal(task.contextId, message.contextId);
        assert.equal(task.status.state, 'completed');
      }
    });

    // GET-02, CTX-02, SUB-02, V03-12, V03-25
    scenario('a task that is not there is not found', async (agent) => {
      await refused(TaskNotFoundError, () => agent.get(NOBODY));
      await refused(TaskNotFoundError, () => agent.cancel(NOBODY));
      await refused(TaskNotFoundError, () => agent.send('short', { taskId: NOBODY }));
      await refused(TaskNotFoundError, () => agent.stream('short', { taskId: NOBODY }));
      await refused(TaskNotFoundError, () => agent.subscribe(NOBODY));
    });

    // CTX-05, CANCEL-02, V03-13
    scenario('a task that has ended takes nothing more', async (agent) => {
      const task = await agent.send('short');
      const { id: taskId } = task;
      await refused(INVALID_PARAMS, () => agent.send('short', { taskId }));
      await refused(INVALID_PARAMS, () => agent.stream('short', { taskId }));
      await refused(TaskNotCancelableError, () => agent.cancel(taskId));
      assert.deepEqual(await agent.get(taskId), task);
      // It can still be subscribed to.
      assert.deepEqual(await rest(agent.subscribe(taskId), task), [
        ['task', 'completed'],
        ['status', 'completed', '', 'final'],
      ]);
    });

    // SEND-06, CTX-04, ERR-03
    scenario('wrong parameters are refused', async (agent) => {
      await refused(INVALID_PARAMS, () => agent.send(undefined));
      await refused(INVALID_PARAMS, () => agent.stream(undefined));

      const task = await agent.send('ask me');
      const elsewhere = { taskId: task.id, contextId: NOBODY };
      await refused(INVALID_PARAMS, () => agent.send('blue', elsewhere));
      await refused(INVALID_PARAMS, () => agent.stream('blue', elsewhere));
      await refused(INVALID_PARAMS, () => agent.get(task.id, { historyLength: -1 }));
    });

    // OPS-02, SEND-10
    scenario('push notifications are refused', async (agent) => {
      const { id: taskId } = await agent.send('short');
      const pushNotificationConfig = { id: 'one', url: 'https://example.com/hook' };
      const config = { taskId, pushNotificationConfig };
      // The client looks at the card and does not even ask.
      await refused(PushNotificationNotSupportedError, () =>
        agent.client.setTaskPushNotificationConfig(config),
      );
      // So here is what the server says to a client that has another card.
      const { client } = await Agent.over(binding, { pushNotifications: true });
      const named = { id: taskId, pushNotificationConfigId: 'one' };
      for (const call of [
        () => client.setTaskPushNotificationConfig(config),
        () => client.getTaskPushNotificationConfig(named),
        () => client.listTaskPushNotificationConfig({ id: taskId }),
        () => client.deleteTaskPushNotificationConfig(named),
      ]) {
        await refused(PushNotificationNotSupportedError, call);
      }
      // Over gRPC, the client does not expect this of a message.
      const kind = binding === 'GRPC' ? NO_PUSH : PushNotificationNotSupportedError;
      const inline = { pushNotificationConfig };
      await refused(kind, () => agent.send('short', inline));
      await refused(kind, () => agent.stream('short', inline));
    });
  });
}

// V03-03, V03-09: the class that programs of 0.3 began with, which says nothing of how to send.
test('the older client class works', { timeout: DEADLINE }, async () => {
  const client = await A2AClient.fromCardUrl(`${URL}/.well-known/agent-card.json`);
  const { message } = request('stream please');
  const sent = await client.sendMessage({ message });
  assert.equal(sent.result.status.state, 'completed');
  const kinds = [];
  const again = { ...message, messageId: randomUUID() };
  for await (const frame of client.sendMessageStream({ message: again })) kinds.push(frame.kind);
  const updates = ['status-update', 'status-update', ...Array(3).fill('artifact-update')];
  assert.deepEqual(kinds, ['task', ...updates, 'status-update']);
  const missing = await client.getTask({ id: NOBODY });
  assert.equal(missing.error.code, -32001);
});
