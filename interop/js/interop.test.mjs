// What the official JavaScript client sees of the server, over every binding.
//
// The capitals in the comments are the requirements of A2A 1.0 that a test is about, as
// docs/interop.md names them.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';

import {
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTasksRequest,
  Role,
  SendMessageRequest,
  SubscribeToTaskRequest,
  TaskPushNotificationConfig,
  TaskState,
} from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import {
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';

const URL = process.env.A2AD_INTEROP_URL;
const BINDINGS = process.env.A2AD_INTEROP_BINDINGS.split(',');
const VERSIONS = process.env.A2AD_INTEROP_VERSIONS.split(',');
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
    assert.equal(agent.client.transport.protocolName, binding);
    assert.equal(agent.client.protocolVersion, '1.0');
    return agent;
  }

  // SendMessage. Returns the task.
  async send(text, options) {
    const task = await this.client.sendMessage(request(text, options));
    assert.ok('status' in task, 'a task was expected');
    return task;
  }

  // SendStreamingMessage. Returns the frames, as they come.
  stream(text, options) {
    return this.client.sendMessageStream(request(text, options));
  }

  // SubscribeToTask. Returns the frames, as they come.
  subscribe(id) {
    return this.client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }));
  }

  get(id, options) {
    return this.client.getTask(GetTaskRequest.fromJSON({ id, ...options }));
  }

  cancel(id) {
    return this.client.cancelTask(CancelTaskRequest.fromJSON({ id }));
  }

  list(options) {
    return this.client.listTasks(ListTasksRequest.fromJSON(options));
  }
}

function request(text, { taskId, contextId, messageId = randomUUID(), ...configuration } = {}) {
  const parts = text === undefined ? [] : [{ text }];
  const message = { messageId, taskId, contextId, role: 'ROLE_USER', parts };
  return SendMessageRequest.fromJSON({ message, configuration });
}

const state = ({ state }) => TaskState[state].replace('TASK_STATE_', '');
const words = (thing) => (thing?.parts ?? []).map((part) => part.content.value).join('\n');
const ids = (tasks) => tasks.map((task) => task.id);

// A frame as a list that is easy to compare. Every frame has to be of the task.
function shown(frame, task) {
  const { $case: kind, value: it } = frame.payload;
  if (kind === 'task') {
    assert.deepEqual([it.id, it.contextId], [task.id, task.contextId]);
    return ['task', state(it.status)];
  }
  assert.deepEqual([it.taskId, it.contextId], [task.id, task.contextId]);
  if (kind === 'statusUpdate') {
    return ['status', state(it.status), words(it.status.message)];
  }
  assert.equal(kind, 'artifactUpdate');
  const flags = (it.append ? 'append' : 'new') + (it.lastChunk ? ' last' : '');
  return ['artifact', it.artifact.artifactId, words(it.artifact), flags];
}

// The next frame of a stream that is not to end yet.
async function next(frames) {
  const { value, done } = await frames.next();
  assert.ok(!done, 'the stream ended too early');
  return value;
}

// The task that a stream opens with.
async function opening(frames) {
  const { payload } = await next(frames);
  assert.equal(payload.$case, 'task');
  return payload.value;
}

// What is left of a stream, up to its end.
async function rest(frames, task) {
  const seen = [];
  for await (const frame of frames) seen.push(shown(frame, task));
  return seen;
}

// A call, or a stream, that fails so. A stream has to fail before its first frame.
async function refused(error, call) {
  await assert.rejects(
    async () => {
      const answer = await call();
      if (!answer?.[Symbol.asyncIterator]) return;
      for await (const frame of answer) assert.fail(`a frame came: ${JSON.stringify(frame)}`);
    },
    (thrown) => {
      // What comes in a stream over JSON-RPC, the client wraps into an error of no kind.
      const wrapped = thrown.message.startsWith('SSE event contained an error');
      const kind = wrapped ? thrown.cause : thrown;
      assert.ok(kind instanceof error, `${kind?.name} instead of ${error.name}: ${thrown}`);
      return true;
    },
  );
}

for (const binding of BINDINGS) {
  describe(binding, { concurrency: false, timeout: 10 * DEADLINE }, () => {
    const scenario = (name, run) =>
      test(name, { timeout: DEADLINE }, async () => run(await Agent.over(binding)));

    // CARD-01, CARD-02
    scenario('the card lists the bindings that the server has', async ({ card }) => {
      const listed = card.supportedInterfaces;
      assert.deepEqual(
        listed.map((one) => one.protocolVersion),
        VERSIONS.flatMap((version) => BINDINGS.map(() => version)),
      );
      assert.deepEqual(
        listed.map((one) => [one.protocolBinding, one.protocolVersion]).sort(),
        VERSIONS.flatMap((version) => BINDINGS.map((one) => [one, version])).sort(),
      );
      assert.equal(card.name, 'Interop');
      assert.deepEqual(ids(card.skills), ['interop']);
      assert.equal(card.capabilities.streaming, true);
      assert.equal(card.capabilities.pushNotifications, false);
    });

    // SEND-01, SEND-02, SEND-05, CTX-01, CTX-07
    scenario('send answers with the finished task', async (agent) => {
      const messageId = randomUUID();
      const task = await agent.send('parts please', { messageId });
      assert.ok(task.id && task.contextId);
      assert.equal(state(task.status), 'COMPLETED');
      assert.ok(Date.parse(task.status.timestamp) > 0);
      assert.equal(words(task.status.message), `That was ${messageId}`);
      assert.equal(task.status.message.role, Role.ROLE_AGENT);
      assert.equal(task.artifacts.length, 1);
      const [artifact] = task.artifacts;
      assert.deepEqual([artifact.artifactId, artifact.name], ['parts', 'all kinds']);
      const [text, raw, url, data] = artifact.parts;
      assert.deepEqual(text.content, { $case: 'text', value: 'Grüße, parts please' });
      assert.equal(raw.content.$case, 'raw');
      assert.deepEqual([...raw.content.value], [0, 1, 254, 255]);
      assert.deepEqual([raw.mediaType, raw.filename], ['application/octet-stream', 'bytes.bin']);
      assert.deepEqual(url.content, { $case: 'url', value: 'https://example.com/a.png' });
      assert.equal(url.mediaType, 'image/png');
      assert.equal(data.content.$case, 'data');
      assert.deepEqual(JSON.parse(JSON.stringify(data.content.value)), {
        pages: 3,
        price: 1.5,
        tags: ['a', 'b'],
        nested: { none: null, yes: true },
      });
      assert.equal(task.history[0].messageId, messageId);
      assert.equal(task.history[0].role, Role.ROLE_USER);
      assert.equal(words(task.history[0]), 'parts please');
    });

    // SEND-16
    for (const [text, end, said] of [
      ['fail', 'FAILED', 'It broke'],
      ['reject', 'REJECTED', 'Not for me'],
      ['something no rule fits', 'REJECTED'],
    ]) {
      scenario(`a failure of the agent is a task and no error: ${text}`, async (agent) => {
        const task = await agent.send(text);
        assert.equal(state(task.status), end);
        if (said) assert.equal(words(task.status.message), said);
      });
    }

    // SEND-03, CANCEL-01
    scenario('send can answer at once', async (agent) => {
      const task = await agent.send('hold on', { returnImmediately: true });
      assert.ok(['SUBMITTED', 'WORKING'].includes(state(task.status)));
      assert.equal(state((await agent.cancel(task.id)).status), 'CANCELED');
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

    // STREAM-01, STREAM-03, STREAM-04, STREAM-06, STREAM-07, ART-01, ART-02, ART-04
    scenario('a stream opens with the task and tells everything in order', async (agent) => {
      const frames = agent.stream('stream please');
      const task = await opening(frames);
      assert.equal(state(task.status), 'SUBMITTED');
      assert.equal(words(task.history[0]), 'stream please');
      assert.deepEqual(await rest(frames, task), [
        ['status', 'WORKING', ''],
        ['status', 'WORKING', 'Working on it'],
        ['artifact', 'numbers', 'one', 'new'],
        ['artifact', 'numbers', 'two', 'append'],
        ['artifact', 'numbers', 'three', 'append last'],
        ['status', 'COMPLETED', 'Counted'],
      ]);
      const kept = await agent.get(task.id);
      assert.deepEqual(kept.artifacts.map(words), ['one\ntwo\nthree']);
    });

    // GET-01, HIST-01, HIST-02, HIST-03
    scenario('get returns the task with as much history as wanted', async (agent) => {
      const { id, contextId } = await agent.send('ask me');
      const sent = await agent.send('blue', { taskId: id, contextId });
      assert.deepEqual(await agent.get(id), sent);
      const whole = sent.history.map((message) => message.messageId);
      assert.ok(whole.length >= 2);
      const none = await agent.get(id, { historyLength: 0 });
      assert.deepEqual(none.history, []);
      assert.deepEqual(none.artifacts, sent.artifacts);
      const one = await agent.get(id, { historyLength: 1 });
      assert.deepEqual(one.history.map((message) => message.messageId), whole.slice(-1));
    });

    // LIST-02, LIST-03, LIST-04, LIST-05, LIST-06, CTX-06, CTX-08
    scenario('list pages through a context, newest first', async (agent) => {
      const made = [await agent.send('short 0')];
      const { contextId } = made[0];
      for (let number = 1; number < 5; number += 1) {
        made.push(await agent.send(`short ${number}`, { contextId }));
      }
      assert.deepEqual(new Set(made.map((task) => task.contextId)), new Set([contextId]));

      const seen = [];
      const sizes = [];
      let pageToken = '';
      for (let turn = 0; turn <= made.length; turn += 1) {
        const page = await agent.list({ contextId, pageSize: 2, pageToken });
        assert.deepEqual([page.pageSize, page.totalSize], [2, 5]);
        assert.ok(page.tasks.every((task) => task.artifacts.length === 0));
        seen.push(...ids(page.tasks));
        sizes.push(page.tasks.length);
        pageToken = page.nextPageToken;
        if (!pageToken) break;
      }
      assert.deepEqual(seen, ids(made).reverse());
      assert.deepEqual(sizes, [2, 2, 1]);

      const page = await agent.list({ contextId, includeArtifacts: true, historyLength: 0 });
      assert.deepEqual([page.pageSize, page.totalSize, page.nextPageToken], [50, 5, '']);
      assert.deepEqual(
        page.tasks.map((task) => words(task.artifacts[0])),
        [4, 3, 2, 1, 0].map((number) => `short ${number}`),
      );
      assert.ok(page.tasks.every((task) => task.history.length === 0));
    });

    // LIST-01, LIST-06
    scenario('list filters by state', async (agent) => {
      const done = await agent.send('short');
      const { contextId } = done;
      const waits = await agent.send('ask me', { contextId });
      for (const [status, expected] of [
        ['TASK_STATE_COMPLETED', [done.id]],
        ['TASK_STATE_INPUT_REQUIRED', [waits.id]],
        ['TASK_STATE_FAILED', []],
      ]) {
        const page = await agent.list({ contextId, status });
        assert.deepEqual(ids(page.tasks), expected);
        assert.equal(page.totalSize, expected.length);
      }
    });

    // CANCEL-01, CANCEL-02, CANCEL-04, STREAM-03
    scenario('cancel ends the task and its stream', async (agent) => {
      const frames = agent.stream('hold on');
      const task = await opening(frames);
      assert.deepEqual(shown(await next(frames), task), ['status', 'WORKING', '']);
      assert.deepEqual(shown(await next(frames), task), ['status', 'WORKING', 'Holding']);
      const canceled = await agent.cancel(task.id);
      assert.deepEqual([canceled.id, state(canceled.status)], [task.id, 'CANCELED']);
      const end = await rest(frames, task);
      assert.deepEqual(end.map((frame) => frame.slice(0, 2)), [['status', 'CANCELED']]);
      await refused(TaskNotCancelableError, () => agent.cancel(task.id));
    });

    // SUB-01, SUB-04, STREAM-05
    scenario('a subscriber joins a running task', async (agent) => {
      const sender = agent.stream('hold on');
      const task = await opening(sender);
      assert.deepEqual(shown(await next(sender), task), ['status', 'WORKING', '']);
      assert.deepEqual(shown(await next(sender), task), ['status', 'WORKING', 'Holding']);
      const frames = agent.subscribe(task.id);
      assert.deepEqual(shown(await next(frames), task), ['task', 'WORKING']);
      await agent.cancel(task.id);
      const ends = [await rest(sender, task), await rest(frames, task)];
      assert.deepEqual(ends[0], ends[1]);
      assert.deepEqual(ends[0].map((frame) => frame.slice(0, 2)), [['status', 'CANCELED']]);
    });

    // SUB-01, SUB-03, SUB-04, STREAM-05, CTX-03, CTX-11
    scenario('two subscribers see the same events', async (agent) => {
      const task = await agent.send('ask me');
      assert.equal(state(task.status), 'INPUT_REQUIRED');
      const [first, second] = [agent.subscribe(task.id), agent.subscribe(task.id)];
      assert.deepEqual(shown(await next(first), task), ['task', 'INPUT_REQUIRED']);
      assert.deepEqual(shown(await next(second), task), ['task', 'INPUT_REQUIRED']);
      // Without the context: the task has it.
      const answered = await agent.send('blue', { taskId: task.id });
      assert.deepEqual([answered.id, answered.contextId], [task.id, task.contextId]);
      const seen = await rest(first, task);
      assert.deepEqual(seen, await rest(second, task));
      assert.deepEqual(seen, [
        ['status', 'WORKING', ''],
        ['status', 'WORKING', 'Mixing blue'],
        ['artifact', 'paint', 'A bucket of blue', 'new last'],
        ['status', 'COMPLETED', 'It is blue'],
      ]);
    });

    // CTX-11, SEND-15, STREAM-02, STREAM-08
    scenario('a task asks and goes on with the answer', async (agent) => {
      const task = await agent.send('ask me');
      const same = { taskId: task.id, contextId: task.contextId };
      assert.equal(state(task.status), 'INPUT_REQUIRED');
      assert.equal(words(task.status.message), 'Which colour?');

      // The stream of a message ends when the agent asks again.
      const frames = agent.stream('red', same);
      assert.equal(shown(await next(frames), task)[0], 'task');
      const end = (await rest(frames, task)).at(-1);
      assert.deepEqual(end, ['status', 'INPUT_REQUIRED', 'Which colour?']);

      const done = await agent.send('blue', same);
      assert.deepEqual([done.id, done.contextId], [task.id, task.contextId]);
      assert.equal(state(done.status), 'COMPLETED');
      assert.equal(words(done.status.message), 'It is blue');
      const said = done.history.filter((message) => message.role === Role.ROLE_USER);
      assert.deepEqual(said.map(words), ['ask me', 'red', 'blue']);
    });

    // SEND-14, STREAM-01
    scenario('an agent can answer with a message', async (agent) => {
      const streamed = [];
      for await (const frame of agent.stream('message me')) streamed.push(frame.payload);
      assert.deepEqual(streamed.map((payload) => payload.$case), ['message']);
      const sent = await agent.client.sendMessage(request('message me'));
      for (const message of [sent, streamed[0].value]) {
        assert.equal(message.role, Role.ROLE_AGENT);
        assert.equal(words(message), 'Just this: message me');
        assert.ok(message.messageId && message.contextId);
        const task = await agent.get(message.taskId);
        assert.equal(task.contextId, message.contextId);
        assert.equal(state(task.status), 'COMPLETED');
      }
    });

    // GET-02, CTX-02, SUB-02
    scenario('a task that is not there is not found', async (agent) => {
      await refused(TaskNotFoundError, () => agent.get(NOBODY));
      await refused(TaskNotFoundError, () => agent.cancel(NOBODY));
      await refused(TaskNotFoundError, () => agent.send('short', { taskId: NOBODY }));
      await refused(TaskNotFoundError, () => agent.stream('short', { taskId: NOBODY }));
      await refused(TaskNotFoundError, () => agent.subscribe(NOBODY));
    });

    // CTX-05, CANCEL-02, SUB-02
    scenario('a task that has ended takes nothing more', async (agent) => {
      const task = await agent.send('short');
      const { id: taskId } = task;
      await refused(UnsupportedOperationError, () => agent.send('short', { taskId }));
      await refused(UnsupportedOperationError, () => agent.stream('short', { taskId }));
      await refused(UnsupportedOperationError, () => agent.subscribe(taskId));
      await refused(TaskNotCancelableError, () => agent.cancel(taskId));
      assert.deepEqual(await agent.get(taskId), task);
    });

    // SEND-06, CTX-04, LIST (pageSize, pageToken), ERR-03
    scenario('wrong parameters are refused', async (agent) => {
      await refused(RequestMalformedError, () => agent.send(undefined));
      await refused(RequestMalformedError, () => agent.stream(undefined));

      const task = await agent.send('ask me');
      const elsewhere = { taskId: task.id, contextId: NOBODY };
      await refused(RequestMalformedError, () => agent.send('blue', elsewhere));
      await refused(RequestMalformedError, () => agent.stream('blue', elsewhere));

      for (const wrong of [{ pageSize: 0 }, { pageSize: 101 }, { pageToken: 'nonsense' }]) {
        await refused(RequestMalformedError, () => agent.list(wrong));
      }
      await refused(RequestMalformedError, () => agent.get(task.id, { historyLength: -1 }));
    });

    // OPS-02, SEND-10
    scenario('push notifications are refused', async (agent) => {
      const { id: taskId } = await agent.send('short');
      const url = 'https://example.com/hook';
      const config = TaskPushNotificationConfig.fromJSON({ taskId, url });
      // The client looks at the card and does not even ask.
      await refused(PushNotificationNotSupportedError, () =>
        agent.client.createTaskPushNotificationConfig(config),
      );
      // So here is what the server says to a client that has another card.
      const { client } = await Agent.over(binding, { pushNotifications: true });
      const named = { taskId, id: 'one' };
      for (const call of [
        () => client.createTaskPushNotificationConfig(config),
        () => client.getTaskPushNotificationConfig(
          GetTaskPushNotificationConfigRequest.fromJSON(named),
        ),
        () => client.listTaskPushNotificationConfig(
          ListTaskPushNotificationConfigsRequest.fromJSON({ taskId }),
        ),
        () => client.deleteTaskPushNotificationConfig(
          DeleteTaskPushNotificationConfigRequest.fromJSON(named),
        ),
      ]) {
        await refused(PushNotificationNotSupportedError, call);
      }
      const inline = { taskPushNotificationConfig: { url } };
      await refused(PushNotificationNotSupportedError, () => agent.send('short', inline));
      await refused(PushNotificationNotSupportedError, () => agent.stream('short', inline));
    });
  });
}
