"""The served agent, as a user of the official Python client sees it over one binding."""

import contextlib

import grpc
import httpx

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.helpers import get_artifact_text, get_message_text, new_text_message
from a2a.types.a2a_pb2 import (
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)


class Agent:
    """Two clients made from the card the server gives out: one that streams, one that does not."""

    def __init__(self, url, binding):
        self.url, self.binding = url, binding
        self._open = contextlib.AsyncExitStack()

    async def __aenter__(self):
        # The one that the SDK would make gives up after 5 seconds, too little for a busy machine.
        self.http = await self._open.enter_async_context(httpx.AsyncClient(timeout=30))
        self.card = await A2ACardResolver(self.http, self.url).get_agent_card()
        self.client = await self._client(streaming=False)
        self.streaming = await self._client(streaming=True)
        return self

    async def __aexit__(self, *why):
        await self._open.aclose()

    async def impatient(self):
        """A streaming client as the SDK makes it, which gives up after 5 seconds of silence."""
        return await self._client(streaming=True, http=None)

    async def _client(self, streaming, http=...):
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self.http if http is ... else http,
            # Nothing to fall back to: a binding that the card lacks is an error.
            supported_protocol_bindings=[self.binding],
            use_client_preference=True,
            grpc_channel_factory=grpc.aio.insecure_channel,
        )
        return await self._open.enter_async_context(ClientFactory(config).create(self.card))

    async def send(self, text, **options):
        """SendMessage. Returns the task."""
        replies = [reply async for reply in self.client.send_message(request(text, **options))]
        assert len(replies) == 1
        assert replies[0].HasField('task'), replies[0]
        return replies[0].task

    def stream(self, text, **options):
        """SendStreamingMessage. Returns the frames, as they come."""
        return self.streaming.send_message(request(text, **options))

    def subscribe(self, task_id):
        """SubscribeToTask. Returns the frames, as they come."""
        return self.streaming.subscribe(SubscribeToTaskRequest(id=task_id))


def request(text, context_id=None, task_id=None, message_id=None, **configuration):
    message = new_text_message(text, context_id=context_id, task_id=task_id, role=Role.ROLE_USER)
    if message_id:
        message.message_id = message_id
    return SendMessageRequest(
        message=message, configuration=SendMessageConfiguration(**configuration)
    )


def state(status):
    return TaskState.Name(status.state).removeprefix('TASK_STATE_')


def shown(frame, task):
    """A frame as a tuple that is easy to compare. Every frame has to be of the task."""
    kind = frame.WhichOneof('payload')
    it = getattr(frame, kind)
    if kind == 'task':
        assert (it.id, it.context_id) == (task.id, task.context_id)
        return ('task', state(it.status))
    assert (it.task_id, it.context_id) == (task.id, task.context_id)
    if kind == 'status_update':
        return ('status', state(it.status), get_message_text(it.status.message))
    assert kind == 'artifact_update', frame
    flags = ('append' if it.append else 'new') + (' last' if it.last_chunk else '')
    return ('artifact', it.artifact.artifact_id, get_artifact_text(it.artifact), flags)


async def rest(frames, task):
    """What is left of a stream, up to its end."""
    return [shown(frame, task) async for frame in frames]
