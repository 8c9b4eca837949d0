// An agent served by the official JavaScript SDK, for a client to be tested against.
//
// It listens on the loopback interface, prints where its card is, and ends when its input does.

import { randomUUID } from 'node:crypto';

import { AGENT_CARD_PATH, Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import {
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
  UserBuilder,
} from '@a2a-js/sdk/server/express';
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import express from 'express';

const CHUNKS = ['one ', 'two ', 'three'];

const part = (text) => ({
  content: { $case: 'text', value: text },
  mediaType: '',
  filename: '',
  metadata: undefined,
});

const message = (text, taskId, contextId) => ({
  messageId: randomUUID(),
  role: Role.ROLE_AGENT,
  parts: [part(text)],
  taskId,
  contextId,
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

/** Does what the first word of a message says. */
class Words {
  /** What is held, with what lets it go. */
  held = new Map();
  /** Tasks that wait for the word `next` before each step: how often it came, and who waits. */
  steps = new Map();

  stepsOf(taskId) {
    if (!this.steps.has(taskId)) this.steps.set(taskId, { free: 0, waiting: [] });
    return this.steps.get(taskId);
  }

  async step(taskId) {
    const steps = this.stepsOf(taskId);
    if (steps.free) steps.free -= 1;
    else await new Promise((go) => steps.waiting.push(go));
  }

  next(taskId) {
    const steps = this.stepsOf(taskId);
    if (steps.waiting.length) steps.waiting.shift()();
    else steps.free += 1;
  }

  async execute({ userMessage, task, taskId, contextId }, bus) {
    const text = userMessage.parts.map((it) => it.content?.value ?? '').join('\n');
    const [word, ...rest] = text.split(' ');
    if (word === 'message' || word === 'next') {
      if (word === 'next') this.next(rest[0]);
      bus.publish(AgentEvent.message(message('Just this', '', contextId)));
      return;
    }
    const answered = task?.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED;
    const now = () => new Date().toISOString();
    const status = (state, said) =>
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: { state, message: said && message(said, taskId, contextId), timestamp: now() },
          metadata: undefined,
        }),
      );
    const artifact = (artifactId, text, more = {}) =>
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId,
            name: more.name ?? '',
            description: '',
            parts: [part(text)],
            metadata: undefined,
            extensions: [],
          },
          append: more.append ?? false,
          lastChunk: more.lastChunk ?? false,
          metadata: undefined,
        }),
      );
    // Every turn has to begin with the task.
    bus.publish(
      AgentEvent.task(
        task ?? {
          id: taskId,
          contextId,
          status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: now() },
          artifacts: [],
          history: [userMessage],
          metadata: undefined,
        },
      ),
    );
    status(TaskState.TASK_STATE_WORKING);
    if (answered) {
      artifact('paint', `A bucket of ${text}`);
      status(TaskState.TASK_STATE_COMPLETED, 'Done');
    } else if (word === 'echo') {
      artifact('echo', rest.join(' '), { name: 'Echo' });
      status(TaskState.TASK_STATE_COMPLETED);
    } else if (word === 'chunks') {
      const stepwise = rest[0] === 'stepwise';
      for (const [index, chunk] of CHUNKS.entries()) {
        if (index && stepwise) await this.step(taskId);
        artifact('numbers', chunk, {
          append: index > 0,
          lastChunk: index + 1 === CHUNKS.length,
        });
      }
      if (stepwise) await this.step(taskId);
      status(TaskState.TASK_STATE_COMPLETED);
    } else if (word === 'ask') {
      status(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which colour?');
    } else if (word === 'hold') {
      await new Promise((release) => this.held.set(taskId, release));
      this.held.delete(taskId);
      status(TaskState.TASK_STATE_CANCELED);
    } else if (word === 'fail') {
      status(TaskState.TASK_STATE_FAILED, 'It broke');
    } else {
      status(TaskState.TASK_STATE_REJECTED, `No such word: ${word}`);
    }
  }

  async cancelTask(taskId, bus) {
    const release = this.held.get(taskId);
    if (release) {
      release();
      return;
    }
    bus.publish(
      AgentEvent.statusUpdate({
        taskId,
        contextId: '',
        status: {
          state: TaskState.TASK_STATE_CANCELED,
          message: undefined,
          timestamp: new Date().toISOString(),
        },
        metadata: undefined,
      }),
    );
  }
}

const app = express();
const listener = app.listen(0, '127.0.0.1');
await new Promise((ready) => listener.once('listening', ready));
const http = `http://127.0.0.1:${listener.address().port}`;

const rpc = new Server();
const rpcPort = await new Promise((ready, failed) =>
  rpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
    error ? failed(error) : ready(port),
  ),
);

const words = 'Does what the first word of a message says.';
const offered = (url, protocolBinding) => ({
  url,
  protocolBinding,
  protocolVersion: '1.0',
  tenant: '',
});
const card = {
  name: 'Words',
  description: words,
  version: '1',
  supportedInterfaces: [
    offered(`${http}/rpc`, 'JSONRPC'),
    offered(`${http}/rest`, 'HTTP+JSON'),
    // The SDK's own examples name gRPC servers without a scheme.
    offered(`127.0.0.1:${rpcPort}`, 'GRPC'),
  ],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [
    {
      id: 'words',
      name: 'Words',
      description: words,
      tags: ['test'],
      examples: [],
      inputModes: [],
      outputModes: [],
      securityRequirements: [],
    },
  ],
  securitySchemes: {},
  securityRequirements: [],
  signatures: [],
};

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Words());
const userBuilder = UserBuilder.noAuthentication;
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder }));
app.use('/rest', restHandler({ requestHandler, userBuilder }));
rpc.addService(A2AService, grpcService({ requestHandler, userBuilder }));

console.log(`${http}/${AGENT_CARD_PATH}`);

process.stdin.resume();
process.stdin.once('end', () => process.exit(0));
