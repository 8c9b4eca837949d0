"""Runs tests that are coroutines, each with a deadline, once per binding of the server."""

import asyncio
import inspect
import os

import pytest

from agent import Agent

DEADLINE = 30
BINDINGS = os.environ['A2AD_INTEROP_BINDINGS'].split(',')


@pytest.fixture(params=BINDINGS)
def agent(request):
    return Agent(os.environ['A2AD_INTEROP_URL'], request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None

    async def test():
        wanted = inspect.signature(pyfuncitem.obj).parameters
        arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
        async with arguments['agent']:
            await pyfuncitem.obj(**arguments)

    asyncio.run(asyncio.wait_for(test(), DEADLINE))
    return True
