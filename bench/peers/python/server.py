"""The agent served by the official Python SDK, its tasks in memory.

It listens where its first argument says, by default on any free port of the loopback interface.
"""

import asyncio
import socket
import sys

import uvicorn
import uvloop
from starlette.applications import Starlette

from a2a.helpers import new_data_part, new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill

# The same as in ../rust/src/lib.rs.
PIECES = 17


class Agent(AgentExecutor):
    """Does what the first word of a message says."""

    async def execute(self, context, event_queue):
        text = context.get_user_input()
        word = text.partition(' ')[0]
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if word in ('burst', 'flush'):
            for number in range(PIECES):
                if word == 'flush':
                    await asyncio.sleep(0)
                data = {'n': number, 'text': f'piece {number:02} of the answer'}
                await updater.add_artifact(
                    [new_data_part(data)],
                    artifact_id='answer',
                    append=number > 0,
                    last_chunk=number + 1 == PIECES,
                )
            if word == 'flush':
                await asyncio.sleep(0)
        elif word == 'hold':
            await asyncio.Event().wait()
        else:
            await updater.add_artifact([new_text_part(text)], artifact_id='response')
        await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else '127.0.0.1:0').rpartition(':')
    listener = socket.create_server((host, int(port)), backlog=1024)
    url = f'http://{host}:{listener.getsockname()[1]}/'
    words = 'Does what the first word of a message says.'
    card = AgentCard(
        name='Bench',
        description=words,
        version='1',
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding='JSONRPC', protocol_version='1.0')
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=['text/plain'],
        default_output_modes=['text/plain'],
        skills=[AgentSkill(id='bench', name='Bench', description=words, tags=['test'])],
    )
    handler = DefaultRequestHandler(Agent(), InMemoryTaskStore(), card)
    app = Starlette(routes=create_jsonrpc_routes(handler, '/'))
    config = uvicorn.Config(app, http='httptools', log_level='warning', access_log=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    print(f'listening on {url}', flush=True)
    await serving


uvloop.run(main())
