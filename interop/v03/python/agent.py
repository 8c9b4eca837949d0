"""The served agent, as a user of the official Python client of 0.3 sees it over one binding."""

import contextlib
import uuid

import grpc
import httpx

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    Message,
    MessageSendConfiguration,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskStatusUpdateEvent,
    TextPart,
)
from a2a.utils import get_artifact_text, get_message_text


# Names of errors by their codes over JSON-RPC.
NAMES = {
    -32001: 'TaskNotFoundError',
    -32002: 'TaskNotCancelableError',
    -32003: 'PushNotificationNotSupportedError',
    -32602: 'InvalidParamsError',
}


class Agent:
    """Two clients made from the card the server gives out: one that streams, one that does not."""

    def __init__(self, url, binding):
        self.url, self.binding = url, binding
        self._open = contextlib.AsyncExitStack()
        self._refusal = None

    async def __aenter__(self):
        # The one that the SDK would make gives up after 5 seconds, too little for a busy machine.
        http = httpx.AsyncClient(timeout=30, event_hooks={'response': [self._note_refusal]})
        self.http = await self._open.enter_async_context(http)
        self.card = await A2ACardResolver(self.http, self.url).get_agent_card()
        self.client, self.streaming = await self.configured()
        return self

    async def __aexit__(self, *why):
        await self._open.aclose()

    async def impatient(self):
        """A streaming client as the SDK makes it, which gives up after 5 seconds of silence."""
        return await self._client(streaming=True, http=None)

    async def configured(self, **options):
        """A client that does not stream and one that does, both with these options."""
        return [await self._client(streaming=how, **options) for how in (False, True)]

    async def _client(self, http=..., **options):
        config = ClientConfig(
            httpx_client=self.http if http is ... else http,
            # Nothing to fall back to: a binding that the card lacks is an error.
            supported_transports=[self.binding],
            use_client_preference=True,
            grpc_channel_factory=grpc.aio.insecure_channel,
            **options,
        )
        return await self._open.enter_async_context(ClientFactory(config).create(self.card))

    async def send(self, text, **options):
        """message/send. Returns the task."""
        message, configuration = request(text, **options)
        replies = self.client.send_message(message, configuration=configuration)
        [reply] = [reply async for reply in replies]
        assert isinstance(reply, tuple), reply
        task, update = reply
        assert isinstance(task, Task) and update is None
        return task

    def stream(self, text, **options):
        """message/stream. Returns the frames, as they come."""
        message, configuration = request(text, **options)
        return self.streaming.send_message(message, configuration=configuration)

    def subscribe(self, task_id):
        """tasks/resubscribe. Returns the frames, as they come."""
        return self.streaming.resubscribe(TaskIdParams(id=task_id))

    async def get(self, task_id, **options):
        return await self.client.get_task(TaskQueryParams(id=task_id, **options))

    async def cancel(self, task_id):
        return await self.client.cancel_task(TaskIdParams(id=task_id))

    async def _note_refusal(self, response):
        if response.is_error:
            await response.aread()
            self._refusal = response

    def kind_of(self, error):
        """The name of an error that the client has thrown.

        Over HTTP+JSON the client tells no more than the status, and of a subscription not even
        that, so the name is read from what the server has answered.
        """
        if self.binding == 'JSONRPC':
            assert isinstance(error, A2AClientJSONRPCError), repr(error)
            return NAMES.get(error.error.code)
        if self.binding == 'GRPC':
            assert isinstance(error, grpc.aio.AioRpcError), repr(error)
            return error.details().partition(':')[0]
        assert isinstance(error, A2AClientHTTPError), repr(error)
        body = self._refusal.json()
        assert body['message']
        return body['type']


def request(text, parts=(), context_id=None, task_id=None, message_id=None, **configuration):
    """A message, with other parts after its text, and how it is to be sent."""
    message = Message(
        role=Role.user,
        parts=[Part(root=TextPart(text=text)), *parts] if text is not None else [],
        message_id=message_id or str(uuid.uuid4()),
        task_id=task_id,
        context_id=context_id,
    )
    return message, MessageSendConfiguration(**configuration)


def words(message):
    """The text of a message. Where there is none, some bindings have an empty one."""
    return get_message_text(message) if message else ''


def shown(frame, task):
    """A frame as a tuple that is easy to compare. Every frame has to be of the task."""
    so_far, it = frame
    assert (so_far.id, so_far.context_id) == (task.id, task.context_id)
    if it is None:
        return ('task', so_far.status.state.value)
    assert (it.task_id, it.context_id) == (task.id, task.context_id)
    if isinstance(it, TaskStatusUpdateEvent):
        flags = 'final' if it.final else ''
        return ('status', it.status.state.value, words(it.status.message), flags)
    assert isinstance(it, TaskArtifactUpdateEvent), frame
    flags = ('append' if it.append else 'new') + (' last' if it.last_chunk else '')
    return ('artifact', it.artifact.artifact_id, get_artifact_text(it.artifact), flags)


async def opening(frames):
    """The task that a stream opens with, as it is then: the client goes on to change it."""
    task, update = await anext(frames)
    assert update is None
    return task.model_copy(deep=True)


async def rest(frames, task):
    """What is left of a stream, up to its end."""
    return [shown(frame, task) async for frame in frames]
