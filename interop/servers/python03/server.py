"""An agent served by the official Python SDK of protocol 0.3, for a client to be tested against.

It listens on the loopback interface, prints where its card is, and ends when its input does. The same agent as that of
`../python`, as its SDK had it done then.
"""

import asyncio
import socket
import sys
from collections import defaultdict

import grpc
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from a2a.grpc.a2a_pb2_grpc import add_A2AServiceServicer_to_server
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    TaskState,
    TextPart,
)
from a2a.utils import new_agent_text_message, new_task

CHUNKS = ['one ', 'two ', 'three']


def text(words):
    return [Part(root=TextPart(text=words))]


class Words(AgentExecutor):
    """Does what the first word of a message says."""

    def __init__(self):
        # Tasks that wait for the word `next` before each step.
        self.steps = defaultdict(lambda: asyncio.Semaphore(0))

    async def execute(self, context, event_queue):
        word, _, rest = context.get_user_input().partition(' ')
        if word in ('message', 'next'):
            if word == 'next':
                self.steps[rest].release()
            reply = new_agent_text_message('Just this', context_id=context.context_id)
            await event_queue.enqueue_event(reply)
            return
        task = context.current_task
        answered = task and task.status.state == TaskState.input_required
        if not task:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        say = lambda words: updater.new_agent_message(text(words))
        await updater.start_work()
        if answered:
            paint = text(f'A bucket of {context.get_user_input()}')
            await updater.add_artifact(paint, artifact_id='paint')
            await updater.complete(say('Done'))
        elif word == 'echo':
            await updater.add_artifact(text(rest), artifact_id='echo', name='Echo')
            await updater.complete()
        elif word == 'chunks':
            step = self.steps[task.id].acquire if rest == 'stepwise' else lambda: asyncio.sleep(0)
            for index, chunk in enumerate(CHUNKS):
                if index:
                    await step()
                await updater.add_artifact(
                    text(chunk),
                    artifact_id='numbers',
                    append=index > 0,
                    last_chunk=index + 1 == len(CHUNKS),
                )
            await step()
            await updater.complete()
        elif word == 'ask':
            await updater.requires_input(say('Which colour?'), final=True)
        elif word == 'hold':
            await asyncio.Event().wait()
        elif word == 'fail':
            await updater.failed(say('It broke'))
        else:
            await updater.reject(say(f'No such word: {word}'))

    async def cancel(self, context, event_queue):
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.cancel()


def card_of(http, rpc):
    words = 'Does what the first word of a message says.'
    return AgentCard(
        name='Words',
        description=words,
        version='1',
        url=f'{http}/rpc',
        preferred_transport='JSONRPC',
        additional_interfaces=[
            AgentInterface(url=f'{http}/rpc', transport='JSONRPC'),
            AgentInterface(url=f'{http}/rest', transport='HTTP+JSON'),
            AgentInterface(url=rpc, transport='GRPC'),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='words', name='Words', description=words, tags=['test'])],
    )


async def main():
    listener = socket.create_server(('127.0.0.1', 0))
    http = f'http://127.0.0.1:{listener.getsockname()[1]}'
    rpc = grpc.aio.server()
    # The SDK's own examples name gRPC servers without a scheme.
    card = card_of(http, f'127.0.0.1:{rpc.add_insecure_port("127.0.0.1:0")}')

    handler = DefaultRequestHandler(Words(), InMemoryTaskStore())
    add_A2AServiceServicer_to_server(GrpcHandler(card, handler), rpc)
    await rpc.start()

    rest = A2ARESTFastAPIApplication(agent_card=card, http_handler=handler).build()
    jsonrpc = A2AStarletteApplication(agent_card=card, http_handler=handler)
    app = Starlette(routes=[*jsonrpc.routes(rpc_url='/rpc'), Mount('/rest', rest)])
    config = uvicorn.Config(app, log_level='warning', timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    print(f'{http}/.well-known/agent-card.json', flush=True)

    await asyncio.to_thread(sys.stdin.buffer.read)
    server.should_exit = True
    await rpc.stop(0)
    await serving


asyncio.run(main())
