// An agent served by the official JavaScript SDK of generation 0.3, for a client to be tested
// against.
//
// It listens on the loopback interface, prints where its card is, and ends when its input does.

import { randomUUID } from 'node:crypto';

import { AGENT_CARD_PATH } from '@a2a-js/sdk';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
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
/** States that a turn of the agent does not go beyond. */
const RESTING = ['completed', 'canceled', 'failed', 'rejected', 'input-required'];

const part = (text) => ({ kind: 'text', text });

const message = (text, taskId, contextId) => ({
  kind: 'message',
  messageId: randomUUID(),
  role: 'agent',
  parts: [part(text)],
  taskId,
  contextId,
});

const statusUpdate = (taskId, contextId, state, said) => ({
  kind: 'status-update',
  taskId,
  contextId,
  status: {
    state,
    message: said && message(said, taskId, contextId),
    timestamp: new Date().toISOString(),
  },
  final: RESTING.includes(state),
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
    const text = userMessage.parts.map((it) => it.text ?? '').join('\n');
    const [word, ...rest] = text.split(' ');
    if (word === 'message' || word === 'next') {
      if (word === 'next') this.next(rest[0]);
      bus.publish(message('Just this', undefined, contextId));
      return;
    }
    const answered = task?.status.state === 'input-required';
    const status = (state, said) => bus.publish(statusUpdate(taskId, contextId, state, said));
    const artifact = (artifactId, text, { name, append = false, lastChunk = false } = {}) =>
      bus.publish({
        kind: 'artifact-update',
        taskId,
        contextId,
        artifact: { artifactId, name, parts: [part(text)] },
        append,
        lastChunk,
      });
    if (!task) {
      bus.publish({
        kind: 'task',
        id: taskId,
        contextId,
        status: { state: 'submitted', timestamp: new Date().toISOString() },
        artifacts: [],
        history: [userMessage],
      });
    }
    status('working');
    if (answered) {
      artifact('paint', `A bucket of ${text}`);
      status('completed', 'Done');
    } else if (word === 'echo') {
      artifact('echo', rest.join(' '), { name: 'Echo' });
      status('completed');
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
      status('completed');
    } else if (word === 'ask') {
      status('input-required', 'Which colour?');
    } else if (word === 'hold') {
      await new Promise((release) => this.held.set(taskId, release));
      this.held.delete(taskId);
      status('canceled');
    } else if (word === 'fail') {
      status('failed', 'It broke');
    } else {
      status('rejected', `No such word: ${word}`);
    }
  }

  async cancelTask(taskId, bus) {
    const release = this.held.get(taskId);
    if (release) release();
    else bus.publish(statusUpdate(taskId, '', 'canceled'));
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
const card = {
  protocolVersion: '0.3.0',
  name: 'Words',
  description: words,
  version: '1',
  url: `${http}/rpc`,
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [
    { url: `${http}/rest`, transport: 'HTTP+JSON' },
    // The client of this generation hands it to gRPC as it is, so it has no scheme.
    { url: `127.0.0.1:${rpcPort}`, transport: 'GRPC' },
  ],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'words', name: 'Words', description: words, tags: ['test'] }],
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
