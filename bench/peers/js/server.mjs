// The agent served by the official JavaScript SDK, its tasks in memory.
//
// It listens where its first argument says, by default on any free port of the loopback interface.

import { setImmediate as others } from 'node:timers/promises';

import { TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

// The same as in ../rust/src/lib.rs.
const PIECES = 17;

const part = ($case, value) => ({
  content: { $case, value },
  mediaType: '',
  filename: '',
  metadata: undefined,
});

/** Does what the first word of a message says. */
class Agent {
  /** What is held, with what lets it go. */
  held = new Map();

  async execute({ userMessage, taskId, contextId }, bus) {
    const text = userMessage.parts.map((it) => it.content?.value ?? '').join('\n');
    const [word] = text.split(' ');
    const now = () => new Date().toISOString();
    const status = (state) =>
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: { state, message: undefined, timestamp: now() },
          metadata: undefined,
        }),
      );
    const artifact = (artifactId, piece, append, lastChunk) =>
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId,
            name: '',
            description: '',
            parts: [piece],
            metadata: undefined,
            extensions: [],
          },
          append,
          lastChunk,
          metadata: undefined,
        }),
      );
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: now() },
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
    status(TaskState.TASK_STATE_WORKING);
    if (word === 'burst' || word === 'flush') {
      for (let number = 0; number < PIECES; number += 1) {
        if (word === 'flush') await others();
        const data = {
          n: number,
          text: `piece ${String(number).padStart(2, '0')} of the answer`,
        };
        artifact('answer', part('data', data), number > 0, number + 1 === PIECES);
      }
      if (word === 'flush') await others();
    } else if (word === 'hold') {
      await new Promise((release) => this.held.set(taskId, release));
      this.held.delete(taskId);
      status(TaskState.TASK_STATE_CANCELED);
      return;
    } else {
      artifact('response', part('text', text), false, true);
    }
    status(TaskState.TASK_STATE_COMPLETED);
  }

  async cancelTask(taskId) {
    this.held.get(taskId)?.();
  }
}

const [host, port] = (process.argv[2] ?? '127.0.0.1:0').split(':');
const app = express();
const listener = app.listen(Number(port), host);
await new Promise((ready) => listener.once('listening', ready));
const url = `http://${host}:${listener.address().port}/`;

const words = 'Does what the first word of a message says.';
const card = {
  name: 'Bench',
  description: words,
  version: '1',
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [
    {
      id: 'bench',
      name: 'Bench',
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

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
const userBuilder = UserBuilder.noAuthentication;
app.use('/', jsonRpcHandler({ requestHandler, userBuilder }));
console.log(`listening on ${url}`);
